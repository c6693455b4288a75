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
            NoNewPrivileges=yes
            ProtectSystem=strict
            ProtectHome=read-only

            [Install]
            WantedBy=multi-user.target

        Without notifications leave out LoadCredential and --webhook-file. The daemon tells systemd when it is ready and
        that it lives; one that hangs is started anew, and goes on where it was: since when something is wrong, and
        what was told of it, is kept beside the store.
        """,
    ),
    (
        "cron and monitoring",
        """
        ``lumctl check`` takes the daemon's newest look where it runs as the same user with the same inventory, target
        and runtime folder, and reads the rack itself where not. In /etc/cron.d/lumctl, for the textfile collector of
        node_exporter:

            * * * * * lumctl XDG_RUNTIME_DIR=/run /usr/local/bin/lumctl -i /etc/lumctl/rack.yaml check --textfile /var/lib/node_exporter/lumctl.prom >/dev/null

        Prometheus scrapes the daemon itself at 127.0.0.1:9469. What cannot be read any more disappears from the
        metrics; so alert on what is there and on what is missing, such as:

            lumctl_component_state{state="failed"} == 1
            lumctl_watch_look_age_seconds > 30 or absent(lumctl_watch_look_age_seconds)
        """,  # noqa: E501 - a line of cron cannot be broken
    ),
    (
        "notifications",
        """
        The URL comes from ``--webhook-file`` or $LUMCTL_WEBHOOK_URL, a bearer token from ``--token-file`` or
        $LUMCTL_WEBHOOK_TOKEN; neither is ever printed. A certificate must be valid; SSL_CERT_FILE names other
        authorities. No redirect is followed and no proxy is used. Each POST is a JSON object with these fields, to
        which more may be added:

            schema         lumctl/notification/v1
            id             the same for the same news
            occasion       opened, worsened, reminder or resolved
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
        seconds, are tried again for an hour, with pauses that grow to a minute; 256 notifications wait at most.
        """,
    ),
)
