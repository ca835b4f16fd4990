import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { SettingsSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { toDuration } from "./stream/hello.ts";
import { type LoggedLine, recordingLogger } from "./testing/agent-harness.ts";
import { WishLog } from "./wish-log.ts";

const settingsOf = (heartbeatMs: number, infoMs: number) =>
  create(SettingsSchema, {
    heartbeatInterval: toDuration(heartbeatMs),
    infoInterval: toDuration(infoMs),
  });

let lines: LoggedLine[];
let wishes: WishLog;
beforeEach(() => {
  lines = [];
  wishes = new WishLog(recordingLogger(lines), { heartbeatMs: 5_000, infoMs: 30_000 });
});

const said = () => lines.splice(0).map(({ level, fields }) => [level, fields]);

describe("WishLog", () => {
  it("should log once what has no effect, with both values", () => {
    wishes.heed(settingsOf(15_000, 60_000));
    expect(said()).toEqual([
      ["warn", { key: "Compute.Heartbeat.Interval", configured_ms: 5_000, in_force_ms: 15_000 }],
      [
        "warn",
        {
          key: "Compute.Heartbeat.InfoUpdateInterval",
          configured_ms: 30_000,
          in_force_ms: 60_000,
        },
      ],
    ]);
    expect(wishes.ungranted).toHaveLength(2);
    // A new stream sends the same settings again.
    wishes.heed(settingsOf(15_000, 60_000));
    expect(said()).toEqual([]);
  });

  it("should log changes again, and what is finally granted", () => {
    wishes.heed(settingsOf(15_000, 60_000));
    said();
    wishes.heed(settingsOf(10_000, 30_000));
    expect(said()).toEqual([
      ["warn", { key: "Compute.Heartbeat.Interval", configured_ms: 5_000, in_force_ms: 10_000 }],
      ["info", { key: "Compute.Heartbeat.InfoUpdateInterval", in_force_ms: 30_000 }],
    ]);
    wishes.heed(settingsOf(5_000, 30_000));
    expect(said()).toEqual([["info", { key: "Compute.Heartbeat.Interval", in_force_ms: 5_000 }]]);
    expect(wishes.ungranted).toEqual([]);
  });

  it("should log nothing if nothing is requested or reported", () => {
    const none = { heartbeatMs: undefined, infoMs: undefined };
    new WishLog(recordingLogger(lines), none).heed(settingsOf(1, 1));
    wishes.heed(create(SettingsSchema));
    expect(lines).toEqual([]);
  });
});
