"""Who is asking, for the journal and for approvals."""

import os
import pwd

from lumctl.change.origin import origin
from lumctl.store.approvals import person


def test_who_asks_is_the_user_of_the_process_whatever_the_environment_says(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert person(origin()) == pwd.getpwuid(os.getuid()).pw_name
