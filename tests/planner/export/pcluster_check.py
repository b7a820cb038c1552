"""Run by ParallelCluster's own interpreter: its schema and its validators, against a pretended AWS.

Reads `{name: yaml}` from standard input and writes what is said against each, as JSON lists.
"""

import contextlib
import json
import os
import sys

os.environ |= {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_EC2_METADATA_DISABLED": "true",
}
NOISE = (  # what the pretended AWS cannot answer
    "LaunchTemplateValidator", "CustomAmiTagValidator", "AmiOsCompatibleValidator", "KeyPairValidator",
)  # fmt: skip


def said_of(document):
    import boto3
    from moto import mock_aws
    from pcluster.schemas.cluster_schema import ClusterSchema

    ClusterSchema(cluster_name="x").load(document)
    if "CapacityReservationTarget" in str(document):
        return []  # the pretended AWS knows no reservations: the schema alone has spoken
    with mock_aws():
        os.environ["AWS_DEFAULT_REGION"] = document["Region"]
        from pcluster.aws.aws_api import AWSApi

        AWSApi.reset()
        ec2 = boto3.client("ec2", region_name=document["Region"])
        subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        document["Image"]["CustomAmi"] = image
        ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": False})
        document["HeadNode"]["Networking"]["SubnetId"] = subnet
        for queue in document["Scheduling"]["SlurmQueues"]:
            queue["Networking"]["SubnetIds"] = [subnet]
        config = ClusterSchema(cluster_name="x").load(document)
        found = config.validate()
    return [
        f"{item.validator_type}: {item.message}"
        for item in found
        if item.level.name == "ERROR" and not item.validator_type.endswith(NOISE)
    ]


def main():
    import yaml

    out = {}
    with contextlib.redirect_stdout(sys.stderr):
        for name, text in json.load(sys.stdin).items():
            try:
                out[name] = said_of(yaml.safe_load(text))
            except Exception as error:  # noqa: BLE001
                out[name] = [f"{type(error).__name__}: {error}"]
    json.dump(out, sys.stdout)


main()
