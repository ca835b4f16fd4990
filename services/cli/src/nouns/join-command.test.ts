import { describe, expect, it } from "@jest/globals";
import { joinCommand } from "./join-command.ts";

describe("joinCommand()", () => {
  it("should name what the agent must trust", () => {
    const trust = { caFile: "/etc/our ca.pem", serverName: "rollcall.example" };
    const authority = { kind: "file", path: "/etc/our ca.pem" } as const;
    const text = joinCommand({ registry: "https://10.0.0.1:7700", trust, authority, script: null, token: "rcj_x" });
    expect(text).toContain(
      "  rollcall agent --server https://10.0.0.1:7700 --ca-file '/etc/our ca.pem' --tls-server-name " +
        "rollcall.example --join-token rcj_x\n",
    );
    expect(text).toContain("Other machines need a copy of /etc/our ca.pem.\n");
    expect(text).not.toContain("reaches this one");
  });

  it("should include the authority if it is given", () => {
    const trust = { caFile: "/var/lib/ca.pem", serverName: null };
    const authority = { kind: "text", pem: "PEM\n" } as const;
    const text = joinCommand({ registry: "https://10.0.0.1:7700", trust, authority, script: null, token: "rcj_x" });
    expect(text).toContain(
      "cat > rollcall-ca.pem <<'END'\nPEM\nEND\n" +
        "  rollcall agent --server https://10.0.0.1:7700 --ca-file rollcall-ca.pem --join-token rcj_x\n",
    );
    expect(text).not.toContain("need a copy");
  });

  it("should name the authority's fingerprint if the registry serves the authority", () => {
    const trust = { caFile: "/var/lib/ca.pem", serverName: null };
    const authority = { kind: "fingerprint", fingerprint: "sha256:ab" } as const;
    const text = joinCommand({
      registry: "https://[2001:db8::1]:7700",
      trust,
      authority,
      script: null,
      token: "rcj_x",
    });
    expect(text).toContain(
      "  rollcall agent --server https://[2001:db8::1]:7700 --ca-fingerprint sha256:ab --join-token rcj_x\n",
    );
    expect(text).not.toContain("/var/lib/ca.pem");
  });

  it("should say that a loopback address only works on this machine", () => {
    const trust = { caFile: null, serverName: null };
    const authority = { kind: "system" } as const;
    const text = joinCommand({ registry: "http://127.0.0.1:7700", trust, authority, script: null, token: "TOKEN" });
    expect(text).toContain("  rollcall agent --server 127.0.0.1:7700 --join-token TOKEN\n");
    expect(text).toContain("On other machines, replace the address in --server with one that reaches this machine.\n");
  });

  const script = { pin: "sha256//abc+/=" };
  const registry = "https://10.0.0.1:7700";
  const trust = { caFile: "/var/lib/ca.pem", serverName: null };

  it("should pin the key of a registry whose authority is private, before anything runs", () => {
    const authority = { kind: "fingerprint", fingerprint: "sha256:ab" } as const;
    expect(joinCommand({ registry, trust, authority, script, token: "rcj_x" })).toContain(
      "  s=$(curl -fsS -k --pinnedpubkey 'sha256//abc+/=' https://10.0.0.1:7700/join.sh) && " +
        "ROLLCALL_JOIN_TOKEN=rcj_x sh -c \"$s\" join.sh --server https://10.0.0.1:7700 --pin 'sha256//abc+/=' " +
        "--ca-fingerprint sha256:ab\n",
    );
  });

  it("should let curl verify a registry that the system trusts", () => {
    const authority = { kind: "system" } as const;
    const text = joinCommand({ registry, trust: { ...trust, caFile: null }, authority, script, token: "rcj_x" });
    expect(text).toContain(
      "  s=$(curl -fsS https://10.0.0.1:7700/join.sh) && " +
        'ROLLCALL_JOIN_TOKEN=rcj_x sh -c "$s" join.sh --server https://10.0.0.1:7700\n',
    );
  });

  it.each([
    [{ kind: "file", path: "/etc/our ca.pem" }, "'/etc/our ca.pem'"],
    [{ kind: "text", pem: "PEM" }, "rollcall-ca.pem"],
  ] as const)("should verify the script with the authority's file: %j", (authority, file) => {
    expect(joinCommand({ registry, trust, authority, script, token: "rcj_x" })).toContain(
      `  s=$(curl -fsS --cacert ${file} https://10.0.0.1:7700/join.sh) && ` +
        `ROLLCALL_JOIN_TOKEN=rcj_x sh -c "$s" join.sh --server https://10.0.0.1:7700 --ca-file ${file}\n`,
    );
  });
});
