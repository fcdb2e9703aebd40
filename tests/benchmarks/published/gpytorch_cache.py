"""Gaussian processes that are asked for a mean each, with the caches' graphs."""

# package = "gpytorch==1.15.2"
# beside = ["linear_operator", "jaxtyping", "scipy", "scikit-learn"]
# fixed = "a weak reference in the hook (#2631)"

import gpytorch
import torch

torch.manual_seed(0)


class Process(gpytorch.models.ExactGP):
    def __init__(self, inputs, targets):
        super().__init__(inputs, targets, gpytorch.likelihoods.GaussianLikelihood())
        self.mean, self.covariance = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()

    def forward(self, inputs):
        mean, covariance = self.mean(inputs), self.covariance(inputs)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


for _ in range(60):
    inputs = torch.rand(32, 2)
    model = Process(inputs, inputs.sum(-1)).eval()
    with gpytorch.settings.detach_test_caches(False):
        mean = model(torch.rand(4, 2)).mean
print(mean.sum().item())
