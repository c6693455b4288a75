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
