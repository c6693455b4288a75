"""The parts of the manual that no command's own help contains."""

ABOUT = """
``lumctl`` reads the health of every accelerator and every light path of a rack. It plans changes, performs them step by
step, undoes them if a step fails, and records each run as a runbook that can be replayed.

Data goes to standard output, progress and messages to standard error. A command that changes light paths first shows
its steps and asks for confirmation; ``--yes`` confirms for unattended use, ``--dry-run`` only shows the steps. Every
command has a target: the rack, or the simulator of the same inventory.
"""

EXIT_STATUS = (
    ("0", "Done."),
    ("1", "Unexpected error: a bug in lumctl."),
    ("2", "The command, the inventory or the configuration is wrong."),
    ("3", "Something could not be reached."),
    ("4", "Unhealthy."),
    ("5", "Refused because of a policy, stale plan, lock, unreadable store or precondition. Nothing was done."),
    ("6", "Failed and rolled back: the rack is in the state before the command."),
    ("7", "Half done: an operator must decide what happens next."),
    ("130", "Interrupted."),
)


CHECK_STATUS = (
    ("0", "OK."),
    ("1", "WARNING."),
    ("2", "CRITICAL."),
    ("3", "UNKNOWN; also if the command, the inventory or the collection of readings has an error."),
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
    ("LUMCTL_WEBHOOK_URL", "The URL to which ``lumctl watch`` posts notifications, if no file contains it."),
    ("LUMCTL_WEBHOOK_TOKEN", "The bearer token for that URL, if no file contains it."),
    (
        "LUMCTL_RECORD",
        "An existing folder, in which the calls of device drivers and their answers are recorded, one file per driver.",
    ),
    ("LUMCTL_RECORDINGS", "A folder of such recordings; the drivers ``replay-...`` answer from them."),
    (
        "LUMCTL_PLAIN_SSH",
        "If set and not 0, SSH uses only paramiko's public API: slower, with two threads for each host.",
    ),
    ("LUMCTL_TRACEBACK", "If set, an unexpected error prints its traceback."),
    ("NO_COLOR", "If set, output has no colours."),
    (
        "PAGER, LESS",
        "The pager for output longer than the terminal, and its options; default ``less``, ``FRX``. Empty: no pager.",
    ),
    ("XDG_STATE_HOME", "The folder for stores whose place the inventory does not name; default ``~/.local/state``."),
    (
        "XDG_RUNTIME_DIR",
        "The folder for the sockets of the daemon and of a simulator, and its keys; default: the temporary folder.",
    ),
)

FILES = (
    ("./lumctl.yaml", "The inventory, if no other is named."),
    ("~/.config/lumctl/inventory.yaml", "The inventory, if no other is named and ``./lumctl.yaml`` does not exist."),
    (
        "~/.local/state/lumctl/RACK",
        "The store of a rack (job placement, journal), if the inventory does not name its place.",
    ),
    ("~/.local/state/lumctl/top.json", "The user's settings of ``lumctl top``: theme and columns."),
    ("~/.ssh/config", "SSH settings of hosts that the inventory does not state."),
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
    "lumctl-studies(7)",
    "lumctl-tutorial(7)",
)
"""Pages without a command: the file formats, and the numbering of a mesh."""


DAEMON_SECTIONS = (
    (
        "running it under systemd",
        """
        Save this as /etc/systemd/system/lumctl-watch.service. The hosts must accept the SSH key of the user ``lumctl``,
        and the ``store:`` of the inventory must be a folder below /var/lib/lumctl:

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

        If you need no notifications, omit LoadCredential and --webhook-file. The daemon needs one open file for each
        host. It reports to systemd when it is ready and, at least every ten seconds, that it is alive. systemd restarts
        the daemon if it hangs. The daemon then continues: the start of each fault, and the notifications that were
        sent, are saved next to the store when a finding begins or ends, and otherwise every ten seconds.
        """,
    ),
    (
        "cron and monitoring",
        """
        ``lumctl check`` uses the daemon's newest observation if it runs as the same user with the same inventory,
        target and runtime folder; otherwise it reads the rack itself. For the textfile collector of node_exporter,
        write this line into /etc/cron.d/lumctl:

            * * * * * lumctl XDG_RUNTIME_DIR=/run /usr/local/bin/lumctl -i /etc/lumctl/rack.yaml check --textfile /var/lib/node_exporter/lumctl.prom >/dev/null

        The user ``lumctl`` must be able to write to the folder of the text file. Prometheus can also scrape the daemon
        itself at 127.0.0.1:9469; the HELP line of each metric describes it. Components that can no longer be read
        disappear from the metrics, so alert on values and on missing values. The rules that lumctl prints do so. They
        raise one alert for each incident and for each component with findings outside of incidents, no alert for
        acknowledged findings and components in maintenance, and one alert if the daemon does not run or reads nothing.
        The Prometheus job may have any name:

            lumctl watch --print-rules > /etc/prometheus/rules/lumctl.yml
            promtool check rules /etc/prometheus/rules/lumctl.yml
            lumctl watch --print-dashboard > /var/lib/grafana/dashboards/lumctl.json

        Without Prometheus, the daemon itself can notify an Alertmanager, with the labels alertname (lumctl), severity
        (critical, warning), component, incident, rack and target:

            lumctl watch --alertmanager http://127.0.0.1:9093

        Then only this daemon's observations raise alerts, and there is no alert if the daemon itself does not run. Let
        another program check /healthz.
        """,  # noqa: E501 - a line of cron cannot be broken
    ),
    (
        "notifications",
        """
        The receiver of notifications is a URL, a program (``--command '/etc/lumctl/notify --urgent'``), or both. The
        URL comes from ``--webhook-file`` or $LUMCTL_WEBHOOK_URL, a bearer token from ``--token-file`` or
        $LUMCTL_WEBHOOK_TOKEN; neither is ever printed. The server's certificate must be valid; SSL_CERT_FILE names
        other certificate authorities. lumctl follows no redirect and uses no proxy. Each POST is a JSON object with
        these fields; later versions may add more:

            schema         lumctl/notification/v1
            id             equal for repetitions of the same notification
            occasion       opened, worsened, reminder or resolved; or an event of the autopilot
            text           one line for people
            incident       the incident concerned
            component      its cause; rule is the rule that found it
            state_before   ok, unknown, degraded or failed
            state_after    one of the same words
            since, at      seconds since the epoch
            target, rack   where the incident occurred
            summary        what was found; advice is what to do
            findings       the worst findings
            members        the affected components; member_count is their number

        An answer of 2xx means delivered. After an answer of 5xx, 408, 425 or 429, or no answer within ten seconds,
        lumctl retries the delivery for an hour, with pauses that grow to a minute. At most 256 notifications wait. If
        an incident could not be delivered in that hour and is still open, it is notified again ten minutes later.

        A program is run without a shell. It reads the JSON object from its standard input. The main fields are also in
        the environment variables
        LUMCTL_OCCASION, LUMCTL_TEXT, LUMCTL_RACK, LUMCTL_TARGET, LUMCTL_COMPONENT, LUMCTL_STATE_AFTER, LUMCTL_INCIDENT.
        Exit code 0 means delivered. 65 means that the program rejects this notification. After any other code, lumctl
        retries the delivery as above. After 30 seconds the program is killed with all its child processes. The webhook
        and the program have separate queues.
        """,
    ),
)

GATEWAY_SECTIONS = (
    (
        "running it under systemd",
        """
        Save this as /etc/systemd/system/lumctl-gateway@.service, and start one instance for each rack. The user
        ``lumctl`` must be able to log in to the devices, the group ``operators`` may use the gateway, and the inventory
        has ``gateway: /run/lumctl-gateway/RACK.sock``:

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
        for a login. Restart the gateway after you edit the inventory: it refuses a command whose inventory describes a
        device differently. During the restart, commands that need the gateway fail with exit code 3, and a run that was
        writing may be left half done. When the gateway answers again, ``lumctl status`` shows how to finish that run.
        """,
    ),
    (
        "other machines",
        """
        Other machines reach the gateway over SSH. Write ``gateway_via: HOST`` next to ``gateway: SOCKET``; HOST is a
        host of the inventory on which these machines may run ``lumctl gateway connect``. All machines must use the same
        store, a PostgreSQL database, because the gateway checks the leases in it.
        """,
    ),
    (
        "which writes are sent",
        """
        Every lease of a rack has a number, which is higher than that of the lease before. The gateway sends a write
        only if it carries the number of the newest lease in the store; the gateway reads the store immediately before.
        The holder of a lease also sends its number with its reads: from then on, no older lease can begin a write, and
        the reads wait for writes in progress. Reads need no lease. A device serves one request at a time, so the holder
        of a new lease reads the result of the last write under the previous lease.

        If the store cannot be read, the highest number seen so far decides. The gateway saves it next to the store in
        gateway.fence. When the store can be read again, it may lack that number, because an engine used another store
        or an old copy of the store was restored. Then no lease up to that number may write. The gateway reports this
        and makes the store issue higher numbers from then on, so the next lease writes as usual. A run under an
        excluded lease ends half done: ``lumctl swap resume RUN`` or ``abort RUN`` finishes it under a new lease.
        """,
    ),
    (
        "on the simulator",
        """
        The gateway in the inventory (``gateway: SOCKET``) is the gateway of the rack. On ``--target sim`` only
        $LUMCTL_GATEWAY selects a gateway: a socket, or a folder that contains RACK.sock for each rack. If it is not
        set, commands drive the simulator's devices directly, even while a gateway serves them. Such writes are not
        checked against the newest lease. ``lumctl gateway run --target sim`` prints the variable to set.
        """,
    ),
)

MORE = {"watch": DAEMON_SECTIONS, "gateway": GATEWAY_SECTIONS}
"""Sections that only the page of one noun has: a title and its text."""
