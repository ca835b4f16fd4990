import { describe, expect, it } from "@jest/globals";
import { UsageError } from "@rollcall/cli";
import { checkTlsConfig, refusePlaintext } from "./check-tls-config.ts";
import { PROCESS_KEYS, type ProcessConfig } from "./process-keys.ts";

function configOf(values: Partial<ProcessConfig>): ProcessConfig {
  const defaults = Object.entries(PROCESS_KEYS).map(([path, key]) => [path, key.default]);
  return { ...Object.fromEntries(defaults), ...values };
}

const PAIR = { "TLS.CertFile": "c.pem", "TLS.KeyFile": "k.pem" };

describe("checkTlsConfig()", () => {
  it.each<[Partial<ProcessConfig>, readonly string[]]>([
    [{}, []],
    [PAIR, []],
    [{ "Up.TLS": true, "TLS.ClientCAFile": "a.pem", "TLS.Probes": true }, []],
    [{ "TLS.CertFile": "c.pem" }, ["TLS.KeyFile"]],
    [{ "TLS.KeyFile": "k.pem" }, ["TLS.CertFile"]],
    [{ ...PAIR, "Up.TLS": true }, ["Up.TLS"]],
    [
      { "TLS.ClientCAFile": "a.pem", "TLS.CAFile": "b.pem", "TLS.Probes": true },
      ["TLS.ClientCAFile", "TLS.CAFile", "TLS.Probes"],
    ],
  ])("should find contradictions in %j", (values, paths) => {
    expect(checkTlsConfig(configOf(values)).map(({ path }) => path)).toEqual(paths);
  });
});

describe("refusePlaintext()", () => {
  const open = { "Listen.Host": "0.0.0.0" };
  it("should refuse only clear text that others can reach", () => {
    expect(() => refusePlaintext(configOf(open))).toThrow(UsageError);
    expect(() => refusePlaintext(configOf({ "Listen.Host": "10.1.2.3" }))).toThrow(UsageError);
    for (const fine of [{}, { ...open, ...PAIR }, { ...open, "Up.TLS": true }]) {
      expect(() => refusePlaintext(configOf(fine))).not.toThrow();
    }
    const said = { ...open, "Listen.InsecurePlaintext": true };
    expect(() => refusePlaintext(configOf(said))).not.toThrow();
  });
});
