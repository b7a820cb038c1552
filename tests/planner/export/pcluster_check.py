"""Run by ParallelCluster's own interpreter: its schema and its validators, against a pretended AWS.

Reads `{name: yaml}` from standard input and writes what is said against each, as JSON lists.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

IMAGE = "ami-0123456789abcdef0"
# the pretended AWS has this image alone: describing its thousands takes four seconds of CPU for each cluster
IMAGES = Path(os.environ["HOME"]) / "images.json"
os.environ |= {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_EC2_METADATA_DISABLED": "true",
    "MOTO_AMIS_PATH": str(IMAGES),
}
NOISE = (  # what the pretended AWS cannot answer
    "LaunchTemplateValidator", "CustomAmiTagValidator", "AmiOsCompatibleValidator", "KeyPairValidator",
)  # fmt: skip


def write_images():
    disk = {"root_device_name": "/dev/sda1", "root_device_type": "ebs", "virtualization_type": "hvm"}
    image = {"ami_id": IMAGE, "name": "planner", "description": "", "owner_id": "1", "architecture": "x86_64"}
    IMAGES.write_text(
        json.dumps([{**image, **disk, "public": True, "image_type": "machine", "hypervisor": "xen"}])
    )


def load(document):
    from pcluster.schemas.cluster_schema import ClusterSchema

    return ClusterSchema(cluster_name="x").load(document)


def takes(document):
    load(document)
    return []


def said_of(document):
    """What the validators say of a document that the schema takes."""
    import boto3
    from pcluster.aws.aws_api import AWSApi

    if "CapacityReservationTarget" in str(document):
        return []  # the pretended AWS knows no reservations: the schema alone has spoken
    os.environ["AWS_DEFAULT_REGION"] = document["Region"]
    AWSApi.reset()
    ec2 = boto3.client("ec2", region_name=document["Region"])
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    document["Image"]["CustomAmi"] = IMAGE
    ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": False})
    document["HeadNode"]["Networking"]["SubnetId"] = subnet
    for queue in document["Scheduling"]["SlurmQueues"]:
        queue["Networking"]["SubnetIds"] = [subnet]
    return [
        f"{item.validator_type}: {item.message}"
        for item in load(document).validate()
        if item.level.name == "ERROR" and not item.validator_type.endswith(NOISE)
    ]


def attempt(step, document, out, name):
    try:
        out[name] = step(document)
    except Exception as error:  # noqa: BLE001
        out[name] = [f"{type(error).__name__}: {error}"]


def main():
    write_images()
    import yaml
    from moto import mock_aws

    asked = {name: yaml.safe_load(text) for name, text in json.load(sys.stdin).items()}
    out = {}
    with contextlib.redirect_stdout(sys.stderr):
        for name, document in asked.items():
            attempt(takes, document, out, name)
        with mock_aws():
            for name, document in asked.items():
                if not out[name]:
                    attempt(said_of, document, out, name)
    json.dump(out, sys.stdout)


main()
