import { describe, expect, it } from "@jest/globals";
import { formatProblems, listConfig, loadConfig } from "@rollcall/config";
import { checkEventsConfig, EVENTS_KEYS, natsSettings, streamSettings } from "./config.ts";

function load(text: string) {
  return loadConfig({
    keys: EVENTS_KEYS,
    file: { name: "rollcall.yaml", text },
    check: checkEventsConfig,
  });
}

function valuesOf(text: string) {
  const result = load(text);
  if (!result.ok) throw new Error(formatProblems(result.problems));
  return result.config.values;
}

function problemsOf(text: string): string {
  const result = load(text);
  return result.ok ? "" : formatProblems(result.problems);
}

describe("EVENTS_KEYS", () => {
  it("should publish nothing without a server", () => {
    const values = valuesOf("");
    expect(natsSettings(values)).toBeNull();
    expect(values["Events.HeartbeatTopic"]).toBeUndefined();
    expect(streamSettings(values)).toEqual({
      name: "ROLLCALL_EVENTS",
      subjectPrefix: "rollcall.events",
      storage: "file",
      replicas: 1,
      maxAgeMs: 7 * 86_400_000,
      maxBytes: 0,
      duplicateWindowMs: 120_000,
    });
  });

  it("should read servers, credentials and TLS", () => {
    const settings = natsSettings(
      valuesOf(`
        Events:
          Nats:
            Url: [nats://a:4222, tls://b]
            CredentialsFile: /etc/rollcall/nats.creds
            Tls: { CaFile: ca.pem, CertFile: cert.pem, KeyFile: key.pem }
      `),
    );
    expect(settings?.urls.map(String)).toEqual(["nats://a:4222", "tls://b:4222"]);
    expect(settings?.credentialsFile).toBe("/etc/rollcall/nats.creds");
    expect(settings?.tls).toEqual({
      caFile: "ca.pem",
      certFile: "cert.pem",
      keyFile: "key.pem",
      handshakeFirst: false,
    });
  });

  it("should show no secret, neither in a listing nor in a message", () => {
    const result = load(`
      Events.Nats.Url: nats://rollcall:s3cret@nats
      Events.Nats.Password: s3cret
      Events.Nats.User: rollcall
    `);
    if (!result.ok) throw new Error(formatProblems(result.problems));
    const listing = listConfig(result.config);
    expect(listing.find((it) => it.path === "Events.Nats.Url")?.value).toBe("nats://nats:4222");
    expect(JSON.stringify(listing)).not.toContain("s3cret");
    const problems = problemsOf("Events.Nats.Url: [nats://a, 'nats://rollcall:s3cret@two words']");
    expect(problems).toContain("the value is not the URL of a NATS server");
    expect(problems).not.toContain("s3cret");
  });

  it("should know the heartbeat topic by Bacalhau's name", () => {
    const values = valuesOf("Node.Requester.ControlPlaneSettings.HeartbeatTopic: heartbeat");
    expect(values["Events.HeartbeatTopic"]).toBe("heartbeat");
  });

  it.each([
    ["Events.Nats.SubjectPrefix: rollcall.*", "is not a NATS subject without wildcards"],
    ["Events.Nats.SubjectPrefix: rollcall..events", "is not a NATS subject without wildcards"],
    ["Events.HeartbeatTopic: 'heart beat'", "is not a NATS subject without wildcards"],
    ["Events.Nats.Stream: a.b", "is not a stream name"],
    ["Events.Nats.Storage: tape", "is not one of file, memory"],
    ["Events.Nats.Replicas: 6", "is more than 5"],
  ])("should refuse %s", (text, message) => {
    expect(problemsOf(text)).toContain(message);
  });
});

describe("checkEventsConfig()", () => {
  it.each([
    [
      "{ Events.Nats.Token: a, Events.Nats.CredentialsFile: b }",
      "Events.Nats.Token: set at most one kind of NATS credentials",
    ],
    ["Events.Nats.User: a", "Events.Nats.Password: must be set together with Events.Nats.User"],
    ["Events.Nats.Tls.KeyFile: a", "must be set together with Events.Nats.Tls.CertFile"],
    ["{ Events.Nats.MaxAge: 1m, Events.Nats.DuplicateWindow: 61s }", "must not be longer than Events.Nats.MaxAge"],
    ["Events.HeartbeatTopic: rollcall.events.beats", "must not be below Events.Nats.SubjectPrefix"],
  ])("should refuse %s", (text, message) => {
    expect(problemsOf(text)).toContain(message);
  });

  it("should allow a window up to the maximum age, or any window without one", () => {
    expect(problemsOf("{ Events.Nats.MaxAge: 1m, Events.Nats.DuplicateWindow: 1m }")).toBe("");
    expect(problemsOf("{ Events.Nats.MaxAge: 0, Events.Nats.DuplicateWindow: 1h }")).toBe("");
  });
});
