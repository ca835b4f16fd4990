import { describe, expect, it } from "@jest/globals";
import { joinCommand } from "./join-command.ts";

describe("joinCommand()", () => {
  it("should name what the agent has to trust", () => {
    const trust = { caFile: "/etc/our ca.pem", serverName: "rollcall.example" };
    const authority = { kind: "file", path: "/etc/our ca.pem" } as const;
    const text = joinCommand({ registry: "https://10.0.0.1:7700", trust, authority, token: "rcj_x" });
    expect(text).toContain(
      "  rollcall agent --server https://10.0.0.1:7700 --ca-file '/etc/our ca.pem' --tls-server-name " +
        "rollcall.example --join-token rcj_x\n",
    );
    expect(text).toContain("Another machine needs a copy of /etc/our ca.pem.\n");
    expect(text).not.toContain("leads here");
  });

  it("should bring the authority along where it is given", () => {
    const trust = { caFile: "/var/lib/ca.pem", serverName: null };
    const authority = { kind: "text", pem: "PEM\n" } as const;
    const text = joinCommand({ registry: "https://10.0.0.1:7700", trust, authority, token: "rcj_x" });
    expect(text).toContain(
      "cat > rollcall-ca.pem <<'END'\nPEM\nEND\n" +
        "  rollcall agent --server https://10.0.0.1:7700 --ca-file rollcall-ca.pem --join-token rcj_x\n",
    );
    expect(text).not.toContain("needs a copy");
  });

  it("should name the authority's fingerprint where the registry hands the authority out", () => {
    const trust = { caFile: "/var/lib/ca.pem", serverName: null };
    const authority = { kind: "fingerprint", fingerprint: "sha256:ab" } as const;
    const text = joinCommand({ registry: "https://[2001:db8::1]:7700", trust, authority, token: "rcj_x" });
    expect(text).toContain(
      "  rollcall agent --server https://[2001:db8::1]:7700 --ca-fingerprint sha256:ab --join-token rcj_x\n",
    );
    expect(text).not.toContain("/var/lib/ca.pem");
  });

  it("should say that a loopback address is for this machine alone", () => {
    const trust = { caFile: null, serverName: null };
    const authority = { kind: "system" } as const;
    const text = joinCommand({ registry: "http://127.0.0.1:7700", trust, authority, token: "TOKEN" });
    expect(text).toContain("  rollcall agent --server 127.0.0.1:7700 --join-token TOKEN\n");
    expect(text).toContain("Another machine needs an address in --server that leads here.\n");
  });
});
