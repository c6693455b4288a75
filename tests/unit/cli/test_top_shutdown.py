"""What the dashboard prints when it is left."""

from types import SimpleNamespace

import pytest

from lumctl.cli.invocation import Invocation
from lumctl.cli.top.shutdown import RECENT_S, end
from lumctl.tui.actions import ApplyView

VIEW = ApplyView("swap-0002: done in 0.27 s, 4 receivers proved", done=True, lines=("resume job train now",))


@pytest.mark.parametrize(
    ("ago_s", "printed"),
    [
        (RECENT_S - 1, [VIEW.outcome, "resume job train now"]),
        (RECENT_S * 9, [f"9 min ago: {VIEW.outcome}"]),
    ],
)
def test_the_advice_of_an_apply_is_printed_only_while_it_is_recent(capsys, ago_s, printed):
    applying = SimpleNamespace(under_way=False, outcome=lambda: VIEW, ended_s_ago=ago_s)
    assert end(Invocation.compose({}, {}), SimpleNamespace(applying=applying, interrupted=False, return_code=0)) == 0
    assert capsys.readouterr().err.splitlines() == printed
