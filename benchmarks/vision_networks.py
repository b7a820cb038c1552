"""Detection, segmentation and diffusion networks of the measured rows, built from their published descriptions.

Each builder returns a PyTorch module without trained weights and the shape of one sample; `benchmarks.vision_profiles`
counts their operators. Needs `torch`, `torchvision` and `diffusers`, which the project itself does not.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Built = tuple[Any, tuple[int, ...]]
# Regions per image that the second stage of Mask R-CNN is trained on, and the quarter of them that holds an object.
REGIONS, POSITIVE_REGIONS = 512, 128
SSD_BOXES = (4, 6, 6, 6, 4, 4)
# What detectors keep as it was pre-trained: a ResNet's stem and first stage (`FREEZE_AT: 2` of Detectron2,
# `trainable_backbone_layers=3` of torchvision and of MLPerf's RetinaNet).
FROZEN = ("conv1", "bn1", "relu", "maxpool", "layer1")
COCO_CLASSES, OPENIMAGES_CLASSES = 81, 264


def _nn() -> Any:
    return importlib.import_module("torch.nn")


def _module(forward: Callable[..., Any], **children: Any) -> Any:
    """A module that holds `children` and runs `forward(self, x)`."""
    nn = _nn()
    made = type("Network", (nn.Module,), {"forward": forward})()
    for name, child in children.items():
        made.add_module(name, child)
    return made


def _frozen(module: Any) -> Any:
    """The module without a backward pass, which `benchmarks.vision_profiles` takes for layers that are not trained."""
    no_grad = importlib.import_module("torch").no_grad

    def forward(self: Any, x: Any) -> Any:
        with no_grad():
            return self.kept(x)

    module.requires_grad_(False)
    return _module(forward, kept=module)


def _freeze(trunk: Any) -> None:
    for name in FROZEN:
        trunk[name] = _frozen(trunk[name])


def _ssd(backbone: Any, width: int, middle: tuple[int, ...], outputs: tuple[int, ...]) -> Any:
    """SSD300 heads on a backbone that yields 38 x 38: five further blocks, boxes and classes by 3 x 3 convolutions."""
    nn = _nn()
    extras, inputs = [], width
    for position, (narrow, out) in enumerate(zip(middle, outputs, strict=True)):
        stride, padding = (2, 1) if position < 3 else (1, 0)
        extras.append(
            nn.Sequential(
                nn.Conv2d(inputs, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(inplace=True),
                nn.Conv2d(narrow, out, 3, stride, padding, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            )
        )  # fmt: skip
        inputs = out
    heads = [
        nn.Conv2d(channels, boxes * (4 + COCO_CLASSES), 3, padding=1)
        for channels, boxes in zip((width, *outputs), SSD_BOXES, strict=True)
    ]

    def forward(self: Any, x: Any) -> Any:
        x = self.backbone(x)
        found = [self.heads[0](x)]
        for block, head in zip(self.extras, self.heads[1:], strict=True):
            x = block(x)
            found.append(head(x))
        return found

    return _module(forward, backbone=backbone, extras=nn.ModuleList(extras), heads=nn.ModuleList(heads))


def _trunk(name: str) -> Any:
    """A torchvision ResNet up to its third stage, which keeps the 38 x 38 resolution of SSD300."""
    nn = _nn()
    net = getattr(importlib.import_module("torchvision.models"), name)(weights=None)
    first = net.layer3[0]
    for layer in (first.conv1, getattr(first, "conv2", first.conv1), first.downsample[0]):
        layer.stride = (1, 1)
    return nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)


def ssd300_resnet50() -> Built:
    """SSD300 v1.1 of NVIDIA DeepLearningExamples (its README): ResNet-50 to the fourth stage."""
    return _ssd(_trunk("resnet50"), 1024, (256, 256, 128, 128, 128), (512, 512, 256, 256, 256)), (3, 300, 300)


def ssd300_resnet34() -> Built:
    """SSD of MLPerf Training v0.7: ResNet-34 backbone (mlcommons/training, single_stage_detector)."""
    return _ssd(_trunk("resnet34"), 256, (256, 256, 128, 128, 128), (512, 512, 256, 256, 256)), (3, 300, 300)


def _retinanet(backbone: str, classes: int, boxes: int, size: int, *, freezes: bool) -> Built:
    detection = "torchvision.models.detection"
    fpn = importlib.import_module(f"{detection}.backbone_utils").resnet_fpn_backbone
    last = importlib.import_module("torchvision.ops.feature_pyramid_network").LastLevelP6P7
    head = importlib.import_module(f"{detection}.retinanet").RetinaNetHead
    batch_norm = _nn().BatchNorm2d
    body = fpn(
        backbone_name=backbone, weights=None, returned_layers=[2, 3, 4], extra_blocks=last(256, 256),
        trainable_layers=5, norm_layer=batch_norm,
    )  # fmt: skip
    if freezes:
        _freeze(body.body)

    def forward(self: Any, x: Any) -> Any:
        return self.head(list(self.body(x).values()))

    return _module(forward, body=body, head=head(256, boxes, classes)), (3, size, size)


def retinanet_resnext50() -> Built:
    """RetinaNet of MLPerf Training v2.1 to v5.1: ResNeXt-50 32x4d, 264 OpenImages classes, 800 x 800."""
    return _retinanet("resnext50_32x4d", OPENIMAGES_CLASSES, 9, 800, freezes=True)


def ssd320_resnet50fpn() -> Built:
    """SSD320 of the TensorFlow object detection API: ResNet-50, feature pyramid and shared heads as RetinaNet's."""
    return _retinanet("resnet50", COCO_CLASSES, 6, 320, freezes=False)


def maskrcnn_r50fpn() -> Built:
    """Mask R-CNN (arXiv 1703.06870): ResNet-50 with feature pyramid; 800 x 1216, the mean COCO image after resizing."""
    torch, nn = importlib.import_module("torch"), _nn()
    detection = importlib.import_module("torchvision.models.detection.mask_rcnn")
    net = detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, trainable_backbone_layers=5)
    _freeze(net.backbone.body)

    def forward(self: Any, x: Any) -> Any:
        levels = list(self.body(x).values())
        self.rpn(levels)
        per_image = x.shape[0]
        regions = torch.empty((REGIONS * per_image, 256, 7, 7), device="meta")
        objects = torch.empty((POSITIVE_REGIONS * per_image, 256, 14, 14), device="meta")
        return self.boxes(self.box_head(regions)), self.masks(self.mask_head(objects))

    heads = net.roi_heads
    made = _module(
        forward, body=net.backbone, rpn=net.rpn.head, box_head=heads.box_head, boxes=heads.box_predictor,
        mask_head=heads.mask_head, masks=heads.mask_predictor,
    )  # fmt: skip
    assert isinstance(made, nn.Module)
    return made, (3, 800, 1216)


def unet3d_kits19() -> Built:
    """3D U-Net of MLPerf Training v1.0 to v4.0: five halvings from 32 to 320 channels on patches of 128^3."""
    torch, nn = importlib.import_module("torch"), _nn()
    widths = (32, 64, 128, 256, 320, 320)

    def double(inputs: int, outputs: int, stride: int) -> Any:
        layers = []
        for channels, step in ((inputs, stride), (outputs, 1)):
            layers += [nn.Conv3d(channels, outputs, 3, step, 1, bias=False), nn.InstanceNorm3d(outputs, affine=True),
                       nn.ReLU(inplace=True)]  # fmt: skip
        return nn.Sequential(*layers)

    down = nn.ModuleList(
        double(i, o, 1 if o == 32 else 2) for i, o in zip((1, *widths[:-1]), widths, strict=True)
    )
    pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
    up = nn.ModuleList(nn.ConvTranspose3d(i, o, 2, 2) for i, o in pairs)
    merge = nn.ModuleList(double(2 * o, o, 1) for _, o in pairs)

    def forward(self: Any, x: Any) -> Any:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        kept.pop()
        for rise, block in zip(self.up, self.merge, strict=True):
            x = block(torch.cat([rise(x), kept.pop()], 1))
        return self.out(x)

    return _module(forward, down=down, up=up, merge=merge, out=nn.Conv3d(32, 3, 1)), (1, 128, 128, 128)


def _unet(size: int, width: int, **configuration: Any) -> Built:
    """Latent U-Net of diffusers with 77 tokens of `width` channels beside the latents of `size` x `size`."""
    torch, diffusers = importlib.import_module("torch"), importlib.import_module("diffusers")
    net = diffusers.UNet2DConditionModel(sample_size=size, cross_attention_dim=width, **configuration)

    def forward(self: Any, x: Any) -> Any:
        batch = x.shape[0]

        def empty(*shape: int) -> Any:
            return torch.empty((batch, *shape), device="meta")

        added = {"text_embeds": empty(1280), "time_ids": empty(6)}
        return self.net(x, empty(), empty(77, width), added_cond_kwargs=added).sample

    return _module(forward, net=net), (4, size, size)


def stable_diffusion_1() -> Built:
    """U-Net of Stable Diffusion 1.5 (its model card's configuration) on latents of 64 x 64, that is 512 pixels."""
    return _unet(64, 768, attention_head_dim=8)


def stable_diffusion_2() -> Built:
    """U-Net of Stable Diffusion 2 (its model card's configuration) on latents of 64 x 64, that is 512 pixels."""
    return _unet(64, 1024, attention_head_dim=(5, 10, 20, 20), use_linear_projection=True)


def stable_diffusion_xl() -> Built:
    """U-Net of Stable Diffusion XL (its model card's configuration) on latents of 128 x 128, that is 1,024 pixels."""
    return _unet(
        128, 2048, block_out_channels=(320, 640, 1280), attention_head_dim=(5, 10, 20),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2, 10), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816,
    )  # fmt: skip


def flux_1_schnell() -> Built:
    """Transformer of FLUX.1 (its model card's configuration) at 256 pixels: 256 image and 256 text tokens (schnell)."""
    torch, diffusers = importlib.import_module("torch"), importlib.import_module("diffusers")
    net = diffusers.FluxTransformer2DModel(guidance_embeds=False)

    def forward(self: Any, x: Any) -> Any:
        batch = x.shape[0]

        def empty(*shape: int) -> Any:
            return torch.empty(shape, device="meta")

        return self.net(
            hidden_states=x, encoder_hidden_states=empty(batch, 256, 4096), pooled_projections=empty(batch, 768),
            timestep=empty(batch), img_ids=empty(256, 3), txt_ids=empty(256, 3),
        ).sample  # fmt: skip

    return _module(forward, net=net), (256, 64)


# Name in the table: builder and the image size that the rows state (pixels along one side).
NETWORKS: dict[str, tuple[Callable[[], Built], int]] = {
    "ssd300_resnet50": (ssd300_resnet50, 300),
    "ssd300_resnet34": (ssd300_resnet34, 300),
    "ssd320_resnet50fpn": (ssd320_resnet50fpn, 320),
    "retinanet_resnext50": (retinanet_resnext50, 800),
    "maskrcnn_r50fpn": (maskrcnn_r50fpn, 800),
    "unet3d_kits19": (unet3d_kits19, 128),
    "stable_diffusion_1_5": (stable_diffusion_1, 512),
    "stable_diffusion_2": (stable_diffusion_2, 512),
    "stable_diffusion_xl": (stable_diffusion_xl, 1024),
    "flux_1_schnell": (flux_1_schnell, 256),
}
