import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "./debian-machines.ts";

/**
 * Let a machine look as if systemd were running. Its systemctl enables
 * units, and starts the agent's command as the unit's user.
 */
export function standInForSystemd({ root }: Machine): void {
  mkdirSync(join(root, "run/systemd/system"), { recursive: true });
  writeFileSync(join(root, "usr/local/sbin/systemctl"), STARTS_THE_AGENT, { mode: 0o755 });
}

const STARTS_THE_AGENT = `#!/bin/sh
unit=/usr/lib/systemd/system/rollcall-agent.service
case $1 in
  enable) exec /usr/bin/systemctl "$@" ;;
  restart)
    setsid setpriv --reuid=rollcall-agent --regid=rollcall-agent --init-groups --no-new-privs \\
      $(sed -n 's/^ExecStart=//p' "$unit") > /var/log/rollcall-agent 2>&1 < /dev/null &
    ;;
esac
`;

/** Find the command that `rollcall token create` prints, and fill in the token. */
export function commandIn({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): string {
  const [, command = ""] = /On the machine:\n\n([\s\S]*?)\n\n/.exec(stderr) ?? [];
  const [token = ""] = /rcj_\S+/.exec(stdout) ?? [];
  return command.replace(/\bTOKEN\b/, token);
}

/** The units whose restrictions are checked. */
export const UNITS = [
  ...["rollcall.service", "rollcall-agent.service", "rollcall@registry.service", "rollcall-backup.service"],
].map((name) => `/usr/lib/systemd/system/${name}`);

export const BACKUP_TIMER = "/usr/lib/systemd/system/rollcall-backup.timer";

/**
 * The unit of the keeper. It is not checked for restrictions, because executions run as other users and need the
 * unrestricted machine.
 */
export const KEEPER_UNIT = "/usr/lib/systemd/system/rollcall-keeper.service";

/** A script that builds the same package with another version. */
export const NEWER_PACKAGE = `dpkg-deb --raw-extract /root/$1 /root/newer
sed -i 's/^Version: .*/Version: 99.0.0/' /root/newer/DEBIAN/control
dpkg-deb --root-owner-group -Zgzip -z1 --build /root/newer /root/newer.deb`;
