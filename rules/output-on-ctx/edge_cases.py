import torch
from torch.autograd import Function


class Sizes(Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        ctx.shape = x.shape
        return x.sum(dim)


class Saved(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y


class Several(Function):
    @staticmethod
    def forward(context, x):
        values, indices = x.sort()
        context.values = values  # leak: output-on-ctx
        context.mark_non_differentiable(indices)
        return values, indices


class Unpacked(Function):
    @staticmethod
    def forward(ctx, x, solve):
        answer = solve(x)
        time, state = answer
        ctx.time = time  # leak: output-on-ctx
        ctx.half = state * 0.5
        return answer


class UnpackedAndRemade(Function):
    @staticmethod
    def forward(ctx, x, solve):
        answer = solve(x)
        time, state = answer
        ctx.time = time
        return time.clone(), state.clone()
