"""What the manual says of running the daemon: a unit for systemd, a line for cron, an alert, what a receiver gets."""

SECTIONS = (
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
        tells systemd when it is ready and, every ten seconds at least, that it lives; one that hangs is started anew,
        and goes on where it was: since when something is wrong, and what was told of it, is kept beside the store. What
        health remembers is written when something is found or is over, and else every ten seconds.
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
        what receivers could not be told by then they are told anew ten minutes later, while it is so.

        A program is run without a shell, and gets the document on its standard input and its main fields in variables:
        LUMCTL_OCCASION, LUMCTL_TEXT, LUMCTL_RACK, LUMCTL_TARGET, LUMCTL_COMPONENT, LUMCTL_STATE_AFTER, LUMCTL_INCIDENT.
        0 is taken for delivered; 65 says that it does not want this one; anything else is tried again as above. After
        30 seconds it is ended with all that it started. The webhook and the program have a queue of their own each.
        """,
    ),
)
