"""A pipeline's call, which samples step by step, has to switch gradients off by itself."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.static.engine import check_source

PIPELINE = """
import torch
from {home} import {base}

class Painter({base}):
    def __init__(self, unet, scheduler):
        super().__init__()
        self.register_modules(unet=unet, scheduler=scheduler)

    {decorator}
    def {method}(self, latents, prompt, steps, scale=7.5):
        for t in self.scheduler.timesteps:
{turn}
        return self.vae.decode(latents)
"""
STEP = """
noise = self.unet(torch.cat([latents] * 2), t, prompt).sample
plain, guided = noise.chunk(2)
noise = plain + scale * (guided - plain)
latents = self.scheduler.step(noise, t, latents).prev_sample
"""


def carried(turn=STEP, *, home="diffusers", base="DiffusionPipeline", decorator="",
            method="__call__"):  # fmt: skip
    """The lines that carry a graph round the loop."""
    body = textwrap.indent(textwrap.dedent(turn), " " * 12)
    source = PIPELINE.format(home=home, base=base, decorator=decorator, method=method, turn=body)
    found = check_source(source)
    return [f.context.strip() for f in found if f.rule.endswith("carried-state")]


KEPT = ["latents = self.scheduler.step(noise, t, latents).prev_sample"]


def test_a_sample_goes_from_step_to_step_with_the_graph_of_all_steps():
    assert carried() == KEPT
    assert carried(home="..pipeline_utils") == KEPT


def test_it_does_so_however_the_step_gives_it_back():
    in_parts = STEP.replace(
        KEPT[0], "out = self.scheduler.step(noise, t, latents)\nlatents = out.prev_sample"
    )
    by_place = STEP.replace(
        KEPT[0], "latents = self.scheduler.step(noise, t, latents, return_dict=False)[0]"
    )

    assert carried(in_parts) == ["latents = out.prev_sample"]
    assert carried(by_place) == [by_place.splitlines()[-1]]


def test_each_loop_is_told_of_once():
    handed_on = STEP + "if prompt:\n    latents = self.tell(t, latents).pop('latents', latents)\n"

    assert carried(handed_on) == KEPT


@pytest.mark.parametrize("decorator", ["@torch.no_grad()", "@torch.inference_mode()"])
def test_under_no_grad_there_is_no_graph(decorator):
    assert carried(decorator=decorator) == []


def test_a_model_that_is_asked_under_no_grad_gives_none():
    quiet = "with torch.no_grad():\n    noise = self.unet(latents, t, prompt).sample\n"
    guided = "noise, _ = noise.chunk(2)\n"

    assert carried(quiet + KEPT[0]) == []
    assert carried(quiet + guided + KEPT[0]) == []


def test_a_sample_that_is_detached_between_the_steps_carries_none():
    assert carried(STEP + "latents = latents.detach()\n") == []


def test_steps_that_are_guided_by_gradients_need_them():
    guided = STEP + "latents.requires_grad_()\nself.loss(latents).backward()\n"

    assert carried(guided) == []


def test_parameters_that_are_out_of_training_make_no_graph():
    frozen = "self.unet.requires_grad_(False)\n" + STEP

    assert carried(frozen) == []


def test_other_classes_and_other_methods_may_be_called_under_no_grad():
    assert carried(home="torch.nn", base="Module") == []
    assert carried(method="denoise") == []
