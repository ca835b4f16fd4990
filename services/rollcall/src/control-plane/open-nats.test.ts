import { expect, it } from "@jest/globals";
import { connectNats } from "@rollcall/events";
import { describeWithNats, readEventRows, startTestNats } from "@rollcall/events/testing";
import { keyFingerprint } from "@rollcall/identity";
import { silentLogger, systemClock } from "@rollcall/process";
import { readEvents } from "@rollcall/store";
import { addNode, createTestDatabase, eventually, FakeAgent, saveKey } from "@rollcall/testkit";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { openProbes } from "./open-probes.ts";
import { planUp } from "./process-plan.ts";
import { startControlPlane } from "./start-control-plane.ts";

const FREE_PORTS = { port: "0", "agent-port": "0", "probe-port": "0", "internal-port": "0" };

describeWithNats("a control plane with --nats", () => {
  it("should relay its log, publish heartbeats, and report so on request", async () => {
    const nats = await startTestNats();
    const database = await createTestDatabase();
    const { store } = database;
    const flags = { ...FREE_PORTS, nats: nats.url, "Events.HeartbeatTopic": "beats" };
    const { values } = await loadControlPlaneConfig({
      shell: { env: {}, cwd: "/" },
      file: undefined,
      flags,
    });
    const shared = { config: values, store, version: "9.9.9", clock: systemClock };
    const plan = planUp(values);
    const ended = new AbortController().signal;
    const probes = await openProbes({ plan, clock: systemClock, log: silentLogger });
    const running = await startControlPlane({ ...shared, plan, probes, log: silentLogger }, ended);
    const listener = connectNats({ settings: nats.settings, name: "test", log: silentLogger });
    const agent = new FakeAgent({ nodeId: "web-1" });
    const { publicKey } = agent;
    const probe = async (path: string) => (await fetch(`http://127.0.0.1:${probes.port}${path}`)).text();
    try {
      const heard: string[] = [];
      const connection = await listener.connected();
      connection.subscribe("beats", {
        callback: (_error, message) => {
          heard.push(message.string());
        },
      });
      await connection.flush();
      await addNode(store, "web-1", { hasKey: false });
      await store.transaction((tx) =>
        saveKey(tx, { nodeId: "web-1", publicKey, fingerprint: keyFingerprint(publicKey) }),
      );
      const stream = await agent.join(`127.0.0.1:${running.agentPort}`);
      await stream.beatAcknowledged();
      await eventually(() => expect(heard).toEqual(['{"NodeID":"web-1","Sequence":1}']));

      await eventually(async () => {
        const { events } = await readEvents(store.db, { after: 0n, limit: 1_000 });
        const stored = await readEventRows(nats);
        expect(stored.map(({ messageId }) => messageId)).toEqual(events.map(({ id }) => id));
        expect(stored.length).toBeGreaterThan(1);
      });
      await eventually(async () => {
        expect(await probe("/readyz")).toContain("active, 0 revisions behind");
        const metrics = await probe("/metrics");
        expect(metrics).toContain("rollcall_events_relay_active 1");
        expect(metrics).toContain("rollcall_events_publish_lag 0");
        expect(metrics).toContain("rollcall_heartbeat_topic_sent_total 1");
      });
    } finally {
      agent.close();
      await listener.close();
      await running.close();
      await probes.close();
      await database.drop();
      await nats.close();
    }
  });
});
