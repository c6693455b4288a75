"""The parts of the manual that no command's own help contains."""

ABOUT = """
``lumctl`` reads the health of every accelerator and every light path of a rack, plans what should be done, carries
it out step by step, undoes it if a step fails, and records it as a runbook that can be replayed.

Data goes to standard output, narration to standard error. A command that moves light shows its steps first and asks for
confirmation; ``--yes`` confirms for unattended use, ``--dry-run`` only shows the steps. Every command has a target: the
rack, or the simulator of the same inventory.
"""

EXIT_STATUS = (
    ("0", "Done."),
    ("1", "Unexpected: a bug."),
    ("2", "The command, the inventory or the configuration is wrong."),
    ("3", "Something could not be reached."),
    ("4", "Unhealthy."),
    ("5", "Refused: a policy, a stale plan, a lock, an unreadable store or a precondition. Nothing was done."),
    ("6", "Failed and rolled back: the rack is as it was."),
    ("7", "Half done: an operator must decide what happens next."),
    ("130", "Interrupted."),
)


CHECK_STATUS = (
    ("0", "OK."),
    ("1", "WARNING."),
    ("2", "CRITICAL."),
    ("3", "UNKNOWN; also for errors of usage, inventory and collection."),
)
"""``check`` follows the convention of monitoring plug-ins instead."""

ENVIRONMENT = (
    ("LUMCTL_INVENTORY", "The inventory, where ``--inventory`` is not given."),
    ("LUMCTL_TARGET", "``rack`` or ``sim``, where ``--target`` is not given."),
    (
        "LUMCTL_STATE",
        "A folder or a database URL for the store; overrides the inventory. A simulator's is apart from it.",
    ),
    (
        "LUMCTL_GATEWAY",
        "The socket of a rack's gateway, or the folder with RACK.sock of each; before what the inventory names.",
    ),
    ("LUMCTL_WEBHOOK_URL", "Where ``lumctl watch`` posts notifications, where no file names it."),
    ("LUMCTL_WEBHOOK_TOKEN", "The bearer token for it, likewise."),
    ("LUMCTL_RECORD", "A folder that is there: what device drivers are asked and answer goes into it, a file each."),
    ("LUMCTL_RECORDINGS", "A folder of such files, from which the drivers ``replay-...`` answer."),
    (
        "LUMCTL_PLAIN_SSH",
        "If set and not 0, hosts are read over paramiko's public API alone: slower, with two threads for each host.",
    ),
    ("LUMCTL_TRACEBACK", "If set, an unexpected error shows where it came from."),
    ("NO_COLOR", "If set, nothing is coloured."),
    ("XDG_STATE_HOME", "Holds the stores that the inventory does not place; ``~/.local/state`` if unset."),
    (
        "XDG_RUNTIME_DIR",
        "Holds the sockets of the daemon and of a running simulator, and its keys; the temporary folder if unset.",
    ),
)

FILES = (
    ("./lumctl.yaml", "The inventory, where none is named."),
    ("~/.config/lumctl/inventory.yaml", "The inventory, where there is no ``./lumctl.yaml`` either."),
    ("~/.local/state/lumctl/RACK", "The store of a rack that the inventory does not place: who runs where, journal."),
    ("~/.ssh/config", "Honoured for what the inventory does not say about a host."),
)

BY_HAND = (
    "lumctl-driver(7)",
    "lumctl-health(7)",
    "lumctl-inventory(5)",
    "lumctl-job(7)",
    "lumctl-job-plugin(7)",
    "lumctl-mesh(7)",
    "lumctl-probe(7)",
    "lumctl-runbook(7)",
    "lumctl-tutorial(7)",
)
"""Pages without a command: the file formats, and the numbering of a mesh."""


DAEMON_SECTIONS = (
    (
        "running it under systemd",
        """
        As /etc/systemd/system/lumctl-watch.service, for a user ``lumctl`` whose SSH key the hosts know and an inventory
        whose ``store:`` is a folder below /var/lib/lumctl:

            [Unit]
            Description=lumctl watches the rack
            Wants=network-online.target
            After=network-online.target

            [Service]
            Type=notify
            User=lumctl
            Environment=LUMCTL_INVENTORY=/etc/lumctl/rack.yaml
            Environment=XDG_RUNTIME_DIR=/run
            RuntimeDirectory=lumctl
            RuntimeDirectoryMode=0700
            StateDirectory=lumctl
            LoadCredential=webhook:/etc/lumctl/webhook
            ExecStart=/usr/local/bin/lumctl watch --webhook-file ${CREDENTIALS_DIRECTORY}/webhook
            ExecReload=/bin/kill -HUP $MAINPID
            Restart=on-failure
            RestartSec=5
            WatchdogSec=60
            LimitNOFILE=65536
            UMask=0077
            NoNewPrivileges=yes
            CapabilityBoundingSet=
            ProtectSystem=strict
            ProtectHome=read-only
            PrivateTmp=yes
            PrivateDevices=yes
            ProtectKernelTunables=yes
            ProtectKernelModules=yes
            ProtectKernelLogs=yes
            ProtectControlGroups=yes
            ProtectClock=yes
            ProtectHostname=yes
            RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
            RestrictNamespaces=yes
            RestrictRealtime=yes
            RestrictSUIDSGID=yes
            LockPersonality=yes
            SystemCallArchitectures=native
            SystemCallFilter=@system-service

            [Install]
            WantedBy=multi-user.target

        Without notifications leave out LoadCredential and --webhook-file. Every host costs an open file. The daemon
        reports to systemd when it is ready and, at least every ten seconds, that it is alive. systemd restarts a daemon
        that hangs, and it continues where it was: when each fault began, and what was notified, is kept beside the
        store. The memory of health is written when a finding begins or ends, and otherwise every ten seconds.
        """,
    ),
    (
        "cron and monitoring",
        """
        ``lumctl check`` takes the daemon's newest look where it runs as the same user with the same inventory, target
        and runtime folder, and reads the rack itself where not. In /etc/cron.d/lumctl, for the textfile collector of
        node_exporter:

            * * * * * lumctl XDG_RUNTIME_DIR=/run /usr/local/bin/lumctl -i /etc/lumctl/rack.yaml check --textfile /var/lib/node_exporter/lumctl.prom >/dev/null

        The folder of the text file must be one in which ``lumctl`` may write. Prometheus scrapes the daemon itself at
        127.0.0.1:9469; each metric says in its HELP line what it is. What cannot be read any more disappears from the
        metrics; so alert on what is there and on what is missing, as the rules do that lumctl prints: one alert for each
        incident and for each component with findings outside of them, none for what is acknowledged or in maintenance, and one
        that calls when the daemon is gone or sees nothing. The job may have any name:

            lumctl watch --print-rules > /etc/prometheus/rules/lumctl.yml
            promtool check rules /etc/prometheus/rules/lumctl.yml
            lumctl watch --print-dashboard > /var/lib/grafana/dashboards/lumctl.json

        Without Prometheus the daemon tells an Alertmanager itself, with the labels alertname (lumctl), severity
        (critical, warning), component, incident, rack and target:

            lumctl watch --alertmanager http://127.0.0.1:9093

        Only what this daemon sees is told that way, and nobody is called when the daemon itself is gone: let something
        else ask for /healthz.
        """,  # noqa: E501 - a line of cron cannot be broken
    ),
    (
        "notifications",
        """
        Receivers are a URL, a program (``--command '/etc/lumctl/notify --urgent'``), or both. The URL comes from
        ``--webhook-file`` or $LUMCTL_WEBHOOK_URL, a bearer token from ``--token-file`` or
        $LUMCTL_WEBHOOK_TOKEN; neither is ever printed. A certificate must be valid; SSL_CERT_FILE names other
        authorities. No redirect is followed and no proxy is used. Each POST is a JSON object with these fields, to
        which more may be added:

            schema         lumctl/notification/v1
            id             the same for the same news
            occasion       opened, worsened, reminder or resolved; or what the autopilot tells
            text           one line for people
            incident       what the news are about
            component      its cause; rule is the one that found it
            state_before   ok, unknown, degraded or failed
            state_after    likewise
            since, at      seconds since the epoch
            target, rack   where
            summary        what was found; advice is what to do
            findings       the worst of them
            members        the components that it touches; member_count says how many

        An answer of 2xx is taken for delivered. Other answers of 5xx, 408, 425 and 429, and no answer within ten
        seconds, are tried again for an hour, with pauses that grow to a minute; 256 notifications wait at most. Of
        what receivers could not be told by then they are told again ten minutes later, while it is so.

        A program is run without a shell, and gets the document on its standard input and its main fields in variables:
        LUMCTL_OCCASION, LUMCTL_TEXT, LUMCTL_RACK, LUMCTL_TARGET, LUMCTL_COMPONENT, LUMCTL_STATE_AFTER, LUMCTL_INCIDENT.
        0 is taken for delivered; 65 says that it does not want this one; anything else is tried again as above. After
        30 seconds it is ended with all that it started. The webhook and the program have a queue of their own each.
        """,
    ),
)

GATEWAY_SECTIONS = (
    (
        "running it under systemd",
        """
        As /etc/systemd/system/lumctl-gateway@.service, one for each rack, for a user ``lumctl`` whom the devices let
        in, and a group ``operators`` who may use it; the inventory says ``gateway: /run/lumctl-gateway/RACK.sock``:

            [Unit]
            Description=lumctl owns the devices of rack %i
            Wants=network-online.target
            After=network-online.target

            [Service]
            Type=notify
            User=lumctl
            Group=operators
            Environment=LUMCTL_INVENTORY=/etc/lumctl/rack.yaml
            RuntimeDirectory=lumctl-gateway
            RuntimeDirectoryMode=0750
            RuntimeDirectoryPreserve=yes
            StateDirectory=lumctl
            ExecStart=/usr/local/bin/lumctl gateway run %i --group operators
            Restart=on-failure
            RestartSec=1
            TimeoutStopSec=90
            UMask=0077
            NoNewPrivileges=yes
            CapabilityBoundingSet=
            ProtectSystem=strict
            ProtectHome=read-only
            PrivateTmp=yes
            PrivateDevices=yes
            ProtectKernelTunables=yes
            ProtectKernelModules=yes
            ProtectKernelLogs=yes
            ProtectControlGroups=yes
            ProtectClock=yes
            ProtectHostname=yes
            RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
            RestrictNamespaces=yes
            RestrictRealtime=yes
            RestrictSUIDSGID=yes
            LockPersonality=yes
            SystemCallArchitectures=native
            SystemCallFilter=@system-service

            [Install]
            WantedBy=multi-user.target

        The devices' secrets need be readable for the gateway only: files that the inventory names for a login are not
        opened by the commands. After an edit of the inventory restart it; a command whose inventory says otherwise of a
        device is refused. While it is restarted, commands that need it fail with exit code 3, and a run that
        was writing may be left half done: once it answers again, see lumctl status for how to bring it to an end.
        """,
    ),
    (
        "other machines",
        """
        A machine that is not the gateway's own reaches it over SSH: ``gateway_via: HOST`` beside ``gateway: SOCKET``
        names a host of the inventory on which ``lumctl gateway connect`` may be run. All machines must use one store, a
        PostgreSQL database, for it is the leases in there that the gateway goes by.
        """,
    ),
    (
        "what may be written",
        """
        A lease's number grows with each lease of a rack. A write is sent if its number is that of the newest lease in
        the store, read just before. The holder of a lease tells its number with what it reads, too: from then on no
        older lease begins a write, and what it reads waits for those that are being sent. Reading needs no lease, and
        a device has one request at a time, so what a new lease reads is what the last write of the one before has left.

        If the store cannot be read, the highest number that was ever seen decides: it is kept beside the store in
        gateway.fence. One that the store does not know when it is back (an engine used another store, or an old copy
        of the store was put back) shuts out all leases up to it: the store is told to give higher numbers from then
        on, the gateway says so, and the next lease writes as usual. A run under a lease that was shut out ends as left
        half done: ``lumctl swap resume RUN`` or ``abort RUN`` finishes it under a new one.
        """,
    ),
    (
        "on the simulator",
        """
        A gateway that the inventory names (``gateway: SOCKET``) is that of the rack. On ``--target sim`` only
        $LUMCTL_GATEWAY names one, a socket or a folder with the socket RACK.sock of each rack; without it commands
        drive the simulator's devices themselves, also while a gateway serves them, and writes are then not held against
        the newest lease. ``lumctl gateway run --target sim`` prints the variable to set.
        """,
    ),
)

MORE = {"watch": DAEMON_SECTIONS, "gateway": GATEWAY_SECTIONS}
"""Sections that only the page of one noun has: a title and its text."""
