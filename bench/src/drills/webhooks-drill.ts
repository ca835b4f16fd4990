import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { seededRandom } from "@rollcall/domain";
import { TestAuthority } from "@rollcall/testkit/certificates";
import type { BenchContext } from "../bench-context.ts";
import { createAccessToken, startDatabase, withClient } from "../servers/database.ts";
import { freePort } from "../servers/free-port.ts";
import { freePorts, type ProcessPorts, type RunningService, startService } from "../servers/rollcall.ts";
import type { Drill, DrillResult } from "./drill.ts";

const EVENTS = { full: 10_000, short: 400 } as const;
const SUBJECTS = 200;
const BURSTS = 200;
const LEAST_BURST = 10;
const BURST_EVERY_MS = 400;
const PUBLISHERS = 2;
const REFUSED_PERCENT = 3;
const SETTLE_MS = 300_000;
const SCAN_EVERY_MS = 200;
const KILL_EVERY_MS = { least: 500, most: 2_500 };

/** Kills the publisher and the receiver of a webhook at random while events arrive. */
export const webhooks: Drill = {
  name: "webhooks",
  title: "SIGKILL of a webhook's publisher or receiver, at random, while 10,000 events are delivered",
  run: async (context, { length, agents }) => {
    const count = agents ?? EVENTS[length];
    const { url } = await startDatabase(context);
    const token = await createAccessToken(url, "admin");
    const world = await WebhookWorld.start(context, url);
    await world.setWebhook(token);
    await world.sendAndKill(count);
    await world.settle(count);
    return world.result(count);
  },
};

class WebhookWorld {
  readonly #context: BenchContext;
  readonly #url: string;
  readonly #authority = new TestAuthority();
  readonly #receiverPort: number;
  readonly #file: string;
  readonly #seed = Math.floor(Math.random() * 2 ** 31);
  readonly #random = seededRandom(this.#seed);
  readonly #publishers: RunningService[] = [];
  #receiver: ChildProcess | null = null;
  #killed = { publishers: 0, receivers: 0 };

  private constructor(context: BenchContext, url: string, receiverPort: number) {
    this.#context = context;
    this.#url = url;
    this.#receiverPort = receiverPort;
    this.#file = join(context.directory, "taken");
    context.progress(`seed ${this.#seed}`);
  }

  static async start(context: BenchContext, url: string): Promise<WebhookWorld> {
    const world = new WebhookWorld(context, url, await freePort());
    context.atEnd(async () => {
      world.#receiver?.kill("SIGKILL");
    });
    await world.#startReceiver();
    for (let index = 0; index < PUBLISHERS; index += 1) world.#publishers.push(await world.#startPublisher());
    return world;
  }

  async setWebhook(token: string): Promise<void> {
    const [publisher] = this.#publishers;
    const method = "rollcall.events.v1.WebhookService/SetWebhook";
    const spec = { url: `https://127.0.0.1:${this.#receiverPort}/`, types: ["node.scheduling.changed"] };
    const answer = await fetch(`http://127.0.0.1:${publisher?.port}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ name: "drill", spec }),
    });
    if (!answer.ok) throw new Error(`SetWebhook was refused: ${await answer.text()}`);
  }

  /** Write events, and kill the publisher or the receiver from time to time. */
  async sendAndKill(count: number): Promise<void> {
    let isSending = true;
    const killing = this.#killWhile(() => isSending);
    const burst = Math.max(LEAST_BURST, Math.ceil(count / BURSTS));
    for (let sent = 0; sent < count; sent += burst) {
      await this.#send(Math.min(burst, count - sent));
      await delay(BURST_EVERY_MS);
      if (sent % 2_000 === 0) this.#context.progress(`${sent} of ${count} events`);
    }
    isSending = false;
    await killing;
  }

  /** Wait until everything has been delivered, without further kills. */
  async settle(count: number): Promise<void> {
    const limit = performance.now() + SETTLE_MS;
    while (performance.now() < limit) {
      const taken = [...this.#taken().values()].reduce((sum, revisions) => sum + new Set(revisions).size, 0);
      if (taken >= count) return;
      await delay(SCAN_EVERY_MS);
    }
  }

  async result(count: number): Promise<DrillResult> {
    const expected = await this.#expected();
    const taken = this.#taken();
    const complaints: string[] = [];
    for (const [subject, revisions] of expected) {
      const first = [...new Set(taken.get(subject) ?? [])];
      const missing = revisions.filter((revision) => !first.includes(revision));
      if (missing.length > 0) complaints.push(`${subject} lacks ${missing.slice(0, 3).join(", ")}`);
      else if (first.join() !== revisions.join()) complaints.push(`${subject} arrived in the wrong order`);
    }
    const deliveries = [...taken.values()].reduce((sum, revisions) => sum + revisions.length, 0);
    const sent = [...expected.values()].reduce((sum, revisions) => sum + revisions.length, 0);
    const wasKilled = this.#killed.publishers > 0 && this.#killed.receivers > 0;
    const passed = complaints.length === 0 && sent === count && wasKilled;
    const { publishers, receivers } = this.#killed;
    const lines = [
      `${passed ? "PASSED" : "FAILED"}: ${sent} events of ${expected.size} subjects (seed ${this.#seed})`,
      `  killed:        ${publishers} publishers, ${receivers} receivers`,
      `  delivered:     ${deliveries}, ${deliveries - sent} of them again; ${REFUSED_PERCENT} percent were refused`,
      `  out of order:  ${complaints.length === 0 ? "none within a subject" : complaints.slice(0, 5).join("; ")}`,
    ];
    return { passed, text: lines.join("\n") };
  }

  async #killWhile(goesOn: () => boolean): Promise<void> {
    const { least, most } = KILL_EVERY_MS;
    while (goesOn() || this.#killed.publishers === 0 || this.#killed.receivers === 0) {
      await delay(least + this.#random() * (most - least));
      if (this.#random() < 0.5) await this.#killReceiver();
      else await this.#killPublisher();
    }
  }

  async #killReceiver(): Promise<void> {
    const receiver = this.#receiver;
    if (receiver === null) return;
    const exit = once(receiver, "exit");
    receiver.kill("SIGKILL");
    await exit;
    this.#killed.receivers += 1;
    await delay(this.#random() * 1_000);
    await this.#startReceiver();
  }

  async #killPublisher(): Promise<void> {
    const index = Math.floor(this.#random() * this.#publishers.length);
    const publisher = this.#publishers[index];
    if (publisher === undefined) return;
    publisher.server.signal("SIGKILL");
    this.#killed.publishers += 1;
    // Expire the lease of the dead process immediately instead of after ten seconds.
    await withClient(this.#url, (client) =>
      client.query(
        `delete from leases where name = 'deliver-webhooks'
           and instance in (select instance from leases where address like '%:' || $1::text)`,
        [publisher.port],
      ),
    );
    this.#publishers[index] = await this.#startPublisher();
  }

  async #startReceiver(): Promise<void> {
    const { certFile, keyFile } = this.#authority.write("receiver");
    const program = new URL(`../servers/webhook-receiver-main${extname(import.meta.url)}`, import.meta.url);
    const words = [String(this.#receiverPort), certFile, keyFile, this.#file, String(REFUSED_PERCENT)];
    const receiver = fork(fileURLToPath(program), words, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#receiver = receiver;
    await once(receiver, "message");
  }

  async #startPublisher(): Promise<RunningService> {
    const ports: ProcessPorts = await freePorts();
    const settings = ["Webhooks.AllowedNetworks=127.0.0.1", `Webhooks.AuthorityFile=${this.#authority.caFile}`];
    const flags = ["--data-dir", this.#context.directory, ...settings.flatMap((setting) => ["--set", setting])];
    return startService(this.#context, "admin", this.#url, flags, { ports });
  }

  /** Write events in the same way as changes to nodes do. Each burst is one transaction. */
  async #send(count: number): Promise<void> {
    const events = Array.from({ length: count }, () => {
      const subject = `n${Math.floor(this.#random() * SUBJECTS)}`;
      return { type: "node.scheduling.changed", subject, actor: "drill", reason: "DRILL", message: "" };
    });
    await withClient(this.#url, (client) => client.query("select append_events($1::jsonb)", [JSON.stringify(events)]));
  }

  async #expected(): Promise<ReadonlyMap<string, readonly string[]>> {
    const { rows } = await withClient(this.#url, (client) =>
      client.query<{ subject: string; revision: string }>(
        `select subject, revision::text from events where reason = 'DRILL' order by events.revision`,
      ),
    );
    return bySubject(rows.map(({ subject, revision }) => [subject, revision]));
  }

  #taken(): ReadonlyMap<string, readonly string[]> {
    if (!existsSync(this.#file)) return new Map();
    const lines = readFileSync(this.#file, "utf8").split("\n").slice(0, -1);
    return bySubject(lines.map((line) => line.split(" ", 2)));
  }
}

function bySubject(pairs: readonly (readonly string[])[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [subject = "", revision = ""] of pairs) {
    const known = found.get(subject);
    if (known === undefined) found.set(subject, [revision]);
    else known.push(revision);
  }
  return found;
}
