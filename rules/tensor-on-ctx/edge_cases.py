import torch
from torch import autograd
from torch.autograd import Function


class Sampled(Function):
    @staticmethod
    def forward(context, loc, tril):
        white = loc.new_empty(loc.shape).normal_()
        context.white = white  # leak: tensor-on-ctx
        context.z = torch.matmul(white, tril.t())  # leak: tensor-on-ctx
        return loc + context.z

    @staticmethod
    def backward(context, grad):
        return grad, grad.t() @ context.white


class Plain(Function):
    @staticmethod
    def forward(ctx, x, weight, alpha):
        ctx.shape = x.shape
        ctx.alpha = alpha
        ctx.size = torch.Size([2, 3])
        ctx.on = torch.is_grad_enabled()
        ctx.state = torch.get_rng_state()
        ctx.count = x.clamp(0, 1).sum().item()
        ctx.dims = list(range(x.dim()))
        return x * alpha


class Dropped(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = torch.bernoulli(x)
        ctx.noise = torch.randn_like(x)
        return x * ctx.mask + ctx.noise

    @staticmethod
    def backward(ctx, grad):
        result = grad * ctx.mask * ctx.noise
        del ctx.mask
        ctx.noise = None
        return result


class Returned(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y


class Weights(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        if not weight.is_contiguous():
            weight = torch.clone(weight)
        ctx.weight = weight
        ctx.bias = bias.detach()
        ctx.x = x.requires_grad_()
        return x @ weight


class Reversible(Function):
    @staticmethod
    def forward(ctx, x, blocks):
        for block in blocks:
            x = block(x)
        ctx.y = x.detach()  # leak: tensor-on-ctx
        return x


class NoFunction:
    def forward(self, x):
        self.mask = torch.bernoulli(x)
        return x * self.mask
