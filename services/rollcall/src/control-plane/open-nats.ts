import { natsSettings, streamSettings } from "@rollcall/events/config";
import type { HealthProcess } from "@rollcall/health";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { RegistryProcess } from "@rollcall/registry";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import type { ProcessPlan } from "./process-plan.ts";

/** The connection of a process to NATS, as its services use it. */
export interface ProcessNats {
  /** Where the registry relays events to. */
  readonly outward: NonNullable<RegistryProcess["outward"]>;
  /** Publishes heartbeats; null when there is no topic for them. */
  readonly onBeat: NonNullable<HealthProcess["onBeat"]> | null;
  /** Whether there is a connection just now. */
  isConnected(): boolean;
  /** End the connection, after all that uses it. */
  close(): Promise<void>;
}

/** What a connection is made with. */
export interface NatsOptions {
  readonly config: ControlPlaneConfig;
  /** Named to the server. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/**
 * Begin to connect to NATS when one is configured and the process has something for it; null otherwise. Nothing waits
 * for the connection: NATS may come and go at any time.
 */
export async function openNats(
  plan: ProcessPlan,
  { config, instance, clock, log, metrics }: NatsOptions,
): Promise<ProcessNats | null> {
  const settings = natsSettings(config);
  const subject = config["Events.HeartbeatTopic"];
  const relays = plan.services.includes("registry");
  const tellsBeats = plan.services.includes("health") && subject !== undefined;
  if (settings === null || !(relays || tellsBeats)) return null;
  // Loaded only where it is used: it takes a while.
  const events = await import("@rollcall/events");
  const stream = streamSettings(config);
  const link = events.connectNats({ settings, name: `rollcall ${instance}`, log, clock, metrics });
  const topic = tellsBeats ? new events.HeartbeatTopic({ link, subject, metrics }) : null;
  return {
    outward: {
      connected: (signal) => link.connected(signal),
      createPublisher: (logId) => new events.EventPublisher({ link, stream, logId, log, metrics }),
      exposeLag: (lag) => events.exposePublishLag(metrics, lag),
    },
    onBeat:
      topic === null
        ? null
        : (nodeId, sequence) => {
            // Dropped and counted when NATS is away or slow.
            topic.publish({ nodeId, sequence });
          },
    isConnected: () => link.connection !== null,
    close: () => link.close(),
  };
}
