"""What controllers of several makes say of their systems, and what the driver makes of it."""

import pytest

from lumctl.devices.errors import DeviceRefusedError

SYSTEMS, SYSTEM, CHASSIS = "/redfish/v1/Systems", "/redfish/v1/Systems/a", "/redfish/v1/Chassis/a"
RESET, INFO = f"{SYSTEM}/Actions/ComputerSystem.Reset", f"{SYSTEM}/ResetActionInfo"


def offers(controller, action) -> None:
    system = controller.documents[SYSTEM]
    controller.documents[SYSTEM] = system | {"Actions": {"#ComputerSystem.Reset": {"target": RESET} | action}}


def is_in(controller, state) -> None:
    controller.documents[SYSTEM] = controller.documents[SYSTEM] | {"PowerState": state}


def test_the_words_of_a_reset_may_stand_in_a_document_of_their_own(controller, driver):
    offers(controller, {"@Redfish.ActionInfo": INFO})
    controller.documents[INFO] = {
        "Parameters": [{"Name": "Other"}, {"Name": "ResetType", "AllowableValues": ["PowerCycle", "ForceOn"]}]
    }
    driver.reset()
    is_in(controller, "Off")
    driver.set_power(on=True)
    assert controller.orders == ["PowerCycle", "ForceOn"]


@pytest.mark.parametrize("action", [{}, {"@Redfish.ActionInfo": INFO}], ids=["not stated", "a reference to nothing"])
def test_where_no_words_are_stated_the_usual_one_is_sent(controller, driver, action):
    offers(controller, action)
    driver.reset()
    driver.set_power(on=False, force=True)
    assert controller.orders == ["ForceRestart", "ForceOff"]


def test_what_is_not_offered_is_not_sent(controller, driver):
    offers(controller, {"ResetType@Redfish.AllowableValues": ["On", "ForceOff", "PushPowerButton"]})
    with pytest.raises(DeviceRefusedError, match="does not support GracefulShutdown, only: ForceOff, On") as refused:
        driver.set_power(on=False)
    assert "force" in refused.value.hint
    with pytest.raises(DeviceRefusedError, match="does not support ForceRestart or PowerCycle"):
        driver.reset()
    assert controller.orders == []


def test_a_system_without_a_reset_is_refused(controller, driver):
    controller.documents[SYSTEM] = controller.documents[SYSTEM] | {"Actions": {}}
    with pytest.raises(DeviceRefusedError, match="system a cannot be switched"):
        driver.set_power(on=False)
    assert controller.orders == []


@pytest.mark.parametrize(
    ("state", "reads", "on", "force", "orders"),
    [
        ("On", True, True, False, []),
        ("On", True, False, False, ["GracefulShutdown"]),
        ("Off", False, False, True, []),
        ("PoweringOff", None, False, False, []),
        ("PoweringOff", None, False, True, ["ForceOff"]),
        ("PoweringOff", None, True, False, ["On"]),
        ("PoweringOn", None, True, False, []),
        ("PoweringOn", None, False, True, ["ForceOff"]),
        ("Paused", None, True, False, ["On"]),
        ("", None, False, True, ["ForceOff"]),
    ],
)
def test_only_what_is_not_so_already_is_ordered(controller, driver, state, reads, on, force, orders):
    is_in(controller, state)
    assert driver.read_power().on is reads
    driver.set_power(on, force=force)
    assert controller.orders == orders


def test_a_system_is_found_on_any_page(controller, serve, make_driver):
    controller.documents[SYSTEMS] = {
        "Members": [{"@odata.id": f"{SYSTEMS}/b"}],
        "Members@odata.nextLink": f"{SYSTEMS}?$skip=1",
    }
    controller.documents[f"{SYSTEMS}?$skip=1"] = {"Members": [{"@odata.id": f"{SYSTEM}/"}]}
    driver = make_driver(serve(controller), component="a")
    assert driver.read_power().model == "M1"
    with pytest.raises(DeviceRefusedError, match="manages no system 'c'") as refused:
        make_driver(serve(controller), component="c").read_power()
    assert refused.value.hint.endswith("one of: b, a")


def test_pages_without_an_end_are_given_up(controller, driver):
    controller.documents[SYSTEMS] = {"Members": [], "Members@odata.nextLink": SYSTEMS}
    with pytest.raises(DeviceRefusedError, match="manages no system"):
        driver.read_power()


def power(*controls):
    return {"PowerControl": [{"PowerConsumedWatts": watts, "RelatedItem": of} for watts, of in controls]}


@pytest.mark.parametrize(
    ("neighbours", "said", "watts"),
    [
        ([], power((90, [])), 90.0),
        ([], power((None, []), (80.5, [])), 80.5),
        (["/redfish/v1/Systems/b"], power((90, [])), None),
        (["/redfish/v1/Systems/b"], power((90, []), (40, [{"@odata.id": SYSTEM}])), 40.0),
        ([], power(("90", [])), None),
    ],
)
def test_what_a_chassis_draws_is_only_a_system_s_own_where_it_shares_it_with_none(
    controller, driver, neighbours, said, watts
):
    controller.documents[CHASSIS] = {
        "Power": {"@odata.id": f"{CHASSIS}/Power"},
        "Links": {"ComputerSystems": [{"@odata.id": each} for each in (SYSTEM, *neighbours)]},
    }
    controller.documents[f"{CHASSIS}/Power"] = said
    assert driver.read_power().watts == watts


def test_it_says_what_it_is(controller, driver):
    controller.documents[SYSTEM] = controller.documents[SYSTEM] | {"Manufacturer": "Maker\x1b[31m", "Model": "M\n1"}
    assert driver.identify() == "Maker [31m M 1, system a, Redfish 1.6.0"


def test_a_controller_that_was_replaced_may_have_another_name_for_its_system(controller, driver):
    assert driver.read_power().model == "M1"
    controller.documents["/redfish/v1/Systems/b"] = controller.documents.pop(SYSTEM) | {"Model": "M2"}
    controller.documents[SYSTEMS] = {"Members": [{"@odata.id": "/redfish/v1/Systems/b"}]}
    assert driver.read_power().model == "M2"
