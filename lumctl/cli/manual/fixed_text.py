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
    ("LUMCTL_INVENTORY", "The inventory, if ``--inventory`` is not given."),
    ("LUMCTL_TARGET", "``rack`` or ``sim``, if ``--target`` is not given; ``runbook replay`` ignores it."),
    (
        "LUMCTL_STATE",
        "A folder or a database URL for the store; overrides the inventory. A simulator has a separate store.",
    ),
    (
        "LUMCTL_GATEWAY",
        "The socket of a rack's gateway, or the folder that contains RACK.sock for each rack; overrides the inventory.",
    ),
    ("LUMCTL_WEBHOOK_URL", "Where ``lumctl watch`` posts notifications, if no file gives the URL."),
    ("LUMCTL_WEBHOOK_TOKEN", "The bearer token for that URL, if no file gives it."),
    (
        "LUMCTL_RECORD",
        "An existing folder: requests to device drivers and their answers are recorded there, one file per driver.",
    ),
    ("LUMCTL_RECORDINGS", "A folder of such recordings, from which the drivers ``replay-...`` answer."),
    (
        "LUMCTL_PLAIN_SSH",
        "If set and not 0, hosts are read only over paramiko's public API: slower, with two threads for each host.",
    ),
    ("LUMCTL_TRACEBACK", "If set, an unexpected error prints its traceback."),
    ("NO_COLOR", "If set, nothing is coloured."),
    (
        "PAGER, LESS",
        "Shows output that is longer than the terminal; by default ``less`` with the options ``FRX``. Empty: none.",
    ),
    ("XDG_STATE_HOME", "Contains the stores whose place the inventory does not give; ``~/.local/state`` if unset."),
    (
        "XDG_RUNTIME_DIR",
        "Contains the sockets of the daemon and of a running simulator, and its keys; the temporary folder if unset.",
    ),
)

FILES = (
    ("./lumctl.yaml", "The inventory, if none is given."),
    ("~/.config/lumctl/inventory.yaml", "The inventory, if ``./lumctl.yaml`` does not exist either."),
    (
        "~/.local/state/lumctl/RACK",
        "The store of a rack if the inventory does not give its place: job placement, journal.",
    ),
    ("~/.local/state/lumctl/top.json", "A user's choices in ``lumctl top``: theme and columns."),
    ("~/.ssh/config", "Used for everything that the inventory does not state about a host."),
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

        Without notifications omit LoadCredential and --webhook-file. Every host needs one open file. The daemon
        reports to systemd when it is ready and, at least every ten seconds, that it is alive. systemd restarts a daemon
        that hangs, and it continues where it was: the start of each fault, and what was notified, are stored next to
        the store. This state is written when a finding begins or ends, and otherwise every ten seconds.
        """,
    ),
    (
        "cron and monitoring",
        """
        ``lumctl check`` uses the daemon's newest observation if it runs as the same user with the same inventory,
        target and runtime folder; otherwise it reads the rack itself. In /etc/cron.d/lumctl, for the textfile collector
        of node_exporter:

            * * * * * lumctl XDG_RUNTIME_DIR=/run /usr/local/bin/lumctl -i /etc/lumctl/rack.yaml check --textfile /var/lib/node_exporter/lumctl.prom >/dev/null

        ``lumctl`` must be able to write to the folder of the text file. Prometheus scrapes the daemon itself at
        127.0.0.1:9469; the HELP line of each metric describes it. Components that can no longer be read disappear from
        the metrics, so alert on values and on missing values, as the rules that lumctl prints do: one alert for each
        incident and for each component with findings outside of incidents, none for acknowledged findings and components
        in maintenance, and one if the daemon does not run or reads nothing. The job may have any name:

            lumctl watch --print-rules > /etc/prometheus/rules/lumctl.yml
            promtool check rules /etc/prometheus/rules/lumctl.yml
            lumctl watch --print-dashboard > /var/lib/grafana/dashboards/lumctl.json

        Without Prometheus the daemon notifies an Alertmanager itself, with the labels alertname (lumctl), severity
        (critical, warning), component, incident, rack and target:

            lumctl watch --alertmanager http://127.0.0.1:9093

        Then only this daemon's observations raise alerts, and no alert is raised if the daemon itself does not run: let
        another program check /healthz.
        """,  # noqa: E501 - a line of cron cannot be broken
    ),
    (
        "notifications",
        """
        Receivers are a URL, a program (``--command '/etc/lumctl/notify --urgent'``), or both. The URL comes from
        ``--webhook-file`` or $LUMCTL_WEBHOOK_URL, a bearer token from ``--token-file`` or
        $LUMCTL_WEBHOOK_TOKEN; neither is ever printed. A certificate must be valid; SSL_CERT_FILE names other
        authorities. No redirect is followed and no proxy is used. Each POST is a JSON object with these fields; more
        may be added:

            schema         lumctl/notification/v1
            id             equal for repetitions of the same notification
            occasion       opened, worsened, reminder or resolved; or an event of the autopilot
            text           one line for people
            incident       the incident concerned
            component      its cause; rule is the rule that found it
            state_before   ok, unknown, degraded or failed
            state_after    likewise
            since, at      seconds since the epoch
            target, rack   where it occurred
            summary        what was found; advice is what to do
            findings       the worst findings
            members        the affected components; member_count is their number

        An answer of 2xx means delivered. After an answer of 5xx, 408, 425 or 429, or no answer within ten seconds,
        delivery is retried for an hour, with pauses that grow to a minute; at most 256 notifications wait. An incident
        that could not be delivered by then is notified again ten minutes later, as long as it is open.

        A program is run without a shell. It reads the document from its standard input, and its main fields are in
        the environment variables
        LUMCTL_OCCASION, LUMCTL_TEXT, LUMCTL_RACK, LUMCTL_TARGET, LUMCTL_COMPONENT, LUMCTL_STATE_AFTER, LUMCTL_INCIDENT.
        Exit code 0 means delivered; 65 means that the program rejects this notification; after any other code delivery
        is retried as above. After 30 seconds the program is killed with all its children. The webhook and the program
        have separate queues.
        """,
    ),
)

GATEWAY_SECTIONS = (
    (
        "running it under systemd",
        """
        As /etc/systemd/system/lumctl-gateway@.service, one for each rack, for a user ``lumctl`` that can log in to the
        devices, and a group ``operators`` that may use the gateway; the inventory has
        ``gateway: /run/lumctl-gateway/RACK.sock``:

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

        Only the gateway needs to read the devices' secrets: the commands do not open the files that the inventory names
        for a login. After an edit of the inventory restart the gateway; it refuses a command whose inventory describes
        a device differently. During the restart, commands that need the gateway fail with exit code 3, and a run that
        was writing may be left half done: once the gateway answers again, lumctl status shows how to finish that run.
        """,
    ),
    (
        "other machines",
        """
        Other machines reach the gateway over SSH: ``gateway_via: HOST`` next to ``gateway: SOCKET`` names a host of the
        inventory on which ``lumctl gateway connect`` may be run. All machines must use one store, a PostgreSQL
        database, because the gateway checks the leases in it.
        """,
    ),
    (
        "values that may be written",
        """
        Lease numbers increase with each lease of a rack. A write is sent if it has the number of the newest lease in
        the store, which is read just before. The holder of a lease also sends its number with its reads: from then on
        no older lease can begin a write, and the reads wait for writes in progress. Reading needs no lease, and a
        device serves one request at a time, so a new lease reads the result of the last write of the previous one.

        If the store cannot be read, the highest number seen so far decides: it is saved next to the store in
        gateway.fence. If the store does not contain that number when it can be read again (an engine used another
        store, or an old copy of the store was restored), no lease up to that number may write: the gateway makes the
        store issue higher numbers from then on and reports this, and the next lease writes as usual. A run under an
        excluded lease ends half done: ``lumctl swap resume RUN`` or ``abort RUN`` finishes it under a new lease.
        """,
    ),
    (
        "on the simulator",
        """
        The gateway in the inventory (``gateway: SOCKET``) is that of the rack. On ``--target sim`` only
        $LUMCTL_GATEWAY selects a gateway: a socket, or a folder that contains RACK.sock for each rack. Without it
        commands drive the simulator's devices themselves, even while a gateway serves them, and writes are then not
        checked against the newest lease. ``lumctl gateway run --target sim`` prints the variable to set.
        """,
    ),
)

MORE = {"watch": DAEMON_SECTIONS, "gateway": GATEWAY_SECTIONS}
"""Sections that only the page of one noun has: a title and its text."""
