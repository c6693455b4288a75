"""What the twin of a management controller says of its machines, in the shapes of the Redfish schemas."""

from typing import Any

ROOT = "/redfish/v1"
LOGIN_PATH = f"{ROOT}/SessionService/Sessions"
COLLECTIONS = ("Systems", "Chassis")
_WORDS = ("On", "ForceOff", "GracefulShutdown", "ForceRestart")


def root_document(*, login: bool) -> dict[str, Any]:
    """The service root."""
    document: dict[str, Any] = {
        "@odata.id": f"{ROOT}/",
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.17.0",
        "Product": "lumctl simulated controller",
        **{collection: {"@odata.id": f"{ROOT}/{collection}"} for collection in COLLECTIONS},
    }
    if login:
        document["Links"] = {"Sessions": {"@odata.id": LOGIN_PATH}}
    return document


def system_document(name: str, *, on: bool) -> dict[str, Any]:
    """One machine."""
    return {
        "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
        "Id": name,
        "Name": name,
        "Manufacturer": "lumctl",
        "Model": "simulated machine",
        "PowerState": "On" if on else "Off",
        "Status": {"State": "Enabled" if on else "StandbyOffline", "Health": "OK", "HealthRollup": "OK"},
        "Links": {"Chassis": [{"@odata.id": f"{ROOT}/Chassis/{name}"}]},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{ROOT}/Systems/{name}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(_WORDS),
            }
        },
    }


def chassis_documents(name: str, *, watts: float) -> dict[str, dict[str, Any]]:
    """The chassis of one machine, and what it draws, by path."""
    chassis, system = f"{ROOT}/Chassis/{name}", {"@odata.id": f"{ROOT}/Systems/{name}"}
    return {
        chassis: {
            "@odata.type": "#Chassis.v1_23_0.Chassis",
            "Id": name,
            "Name": name,
            "ChassisType": "RackMount",
            "Power": {"@odata.id": f"{chassis}/Power"},
            "Links": {"ComputerSystems": [system]},
        },
        f"{chassis}/Power": {
            "@odata.type": "#Power.v1_7_1.Power",
            "Id": "Power",
            "Name": "Power",
            "PowerControl": [
                {"MemberId": "0", "Name": "Machine", "PowerConsumedWatts": round(watts, 1), "RelatedItem": [system]}
            ],
        },
    }


def error_document(message: str) -> dict[str, Any]:
    """What is said against a request."""
    return {
        "error": {
            "code": "Base.1.8.GeneralError",
            "message": "See the extended information.",
            "@Message.ExtendedInfo": [
                {"MessageId": "Base.1.8.GeneralError", "Message": message, "Severity": "Critical"}
            ],
        }
    }
