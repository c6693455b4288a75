"""What the manual says of running a gateway: a unit for systemd, other machines, and what it leaves to see."""

SECTIONS = (
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
        device is refused. While it is restarted, commands that need it fail with exit code 3, and what a run had begun
        is taken back as soon as it answers again.
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
        the store, read just before. If the store cannot be read, the highest number that was ever seen decides: it is
        kept beside the store in gateway.fence. Reading needs no lease, and a device has one request at a time, so what
        a new lease reads is what the last write of the one before has left.
        """,
    ),
)
