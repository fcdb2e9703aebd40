import torch
from torch import nn
from torch.nn import functional as F

netG, netD, actor, critic = (nn.Linear(4, 4) for _ in range(4))
optG = torch.optim.Adam(netG.parameters())
optD = torch.optim.Adam(netD.parameters())
netE = nn.Linear(4, 1)
optB = torch.optim.Adam([*netD.parameters(), *netE.parameters()])
actor_optimizer = torch.optim.Adam(list(actor.parameters()))
critic_optimizer = torch.optim.Adam(critic.parameters())
both = torch.optim.Adam([*netG.parameters(), *netD.parameters()])
scaler = torch.amp.GradScaler()


def scaled(batches):
    for x in batches:
        optD.zero_grad()
        loss = netD(netG(torch.randn_like(x))).mean() - netD(x).mean()  # leak: discarded-gradient
        scaler.scale(loss).backward()
        scaler.step(optD)
        optG.zero_grad()
        scaler.scale(-netD(netG(torch.randn_like(x))).mean()).backward()
        scaler.step(optG)


def without_gradients(batches):
    for x in batches:
        with torch.no_grad():
            fake = netG(torch.randn_like(x))
        optD.zero_grad()
        netD(fake).mean().backward()
        optD.step()
        optG.zero_grad()
        netD(netG(x)).mean().backward()
        optG.step()


def shared_pass(batches):
    for x in batches:
        fake = netG(x)
        optD.zero_grad()
        netD(fake).mean().backward(retain_graph=True)
        optD.step()
        optG.zero_grad()
        netD(fake).mean().backward()
        optG.step()


def stepped_together(batches):
    for x in batches:
        optG.zero_grad()
        optD.zero_grad()
        netD(netG(x)).mean().backward()
        optG.step()
        optD.step()


def one_optimizer(batches):
    for x in batches:
        both.zero_grad()
        netD(netG(x)).mean().backward()
        both.step()


def actor_through_critic(observations):
    critic_optimizer.zero_grad()
    F.mse_loss(critic(observations), observations).backward()
    critic_optimizer.step()
    actor_optimizer.zero_grad()
    (-critic(actor(observations))).mean().backward()
    actor_optimizer.step()


def actor_beside_critic(observations):
    critic_optimizer.zero_grad()
    F.mse_loss(critic(observations), observations).backward()
    critic_optimizer.step()
    values = critic(observations)  # leak: discarded-gradient
    actor_optimizer.zero_grad()
    (actor(observations) * values).mean().backward()
    actor_optimizer.step()


def of_unknown_actions(observations, choose):
    critic_optimizer.zero_grad()
    F.mse_loss(critic(observations), observations).backward()
    critic_optimizer.step()
    actor_optimizer.zero_grad()
    loss = critic({"seen": observations, "taken": choose(observations)}) * actor(observations)
    loss.mean().backward()
    actor_optimizer.step()


def accumulated(batches):
    for number, x in enumerate(batches):
        netD(netG(x)).mean().backward()
        if number % 4 == 3:
            optG.step()
            optG.zero_grad()
            optD.step()
            optD.zero_grad()


def frozen(batches):
    for x in batches:
        for parameter in netG.parameters():
            parameter.requires_grad = False
        optD.zero_grad()
        netD(netG(x)).mean().backward()
        optD.step()
        for parameter in netG.parameters():
            parameter.requires_grad = True
        optG.zero_grad()
        netD(netG(x)).mean().backward()
        optG.step()


def of_two_critics(batches, noise):
    for x in batches:
        optB.zero_grad()
        made = netG(noise)
        first = netD(made)  # leak: discarded-gradient
        second = netE(made)
        (first.mean() + second.mean()).backward()
        optB.step()
        optG.zero_grad()
        netD(netG(x)).mean().backward()
        optG.step()
