import { natsSettings, streamSettings } from "@rollcall/events/config";
import type { HealthProcess } from "@rollcall/health";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { RegistryProcess } from "@rollcall/registry";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { checkNatsFiles } from "./check-nats-files.ts";
import type { ProcessPlan } from "./process-plan.ts";

/** A process's connection to NATS. */
export interface ProcessNats {
  /** The connection over which the registry relays events. */
  readonly outward: NonNullable<RegistryProcess["outward"]>;
  /** Publishes heartbeats; null without a topic for them. */
  readonly onBeat: NonNullable<HealthProcess["onBeat"]> | null;
  /** Whether NATS is connected at the moment. */
  isConnected(): boolean;
  /** Close the connection. Must be called after closing everything that uses it. */
  close(): Promise<void>;
}

export interface NatsOptions {
  readonly config: ControlPlaneConfig;
  /** The client name that the server sees. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/**
 * Start connecting to NATS if it is configured and the process publishes something; otherwise return null. Nothing
 * waits for the connection, because NATS can come and go at any time. Throws a StartError for a file that cannot be
 * used.
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
  await checkNatsFiles(config);
  // Import this package only when it is used, because loading it takes a while.
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
            // When NATS is unreachable or slow, the heartbeat is dropped and counted.
            topic.publish({ nodeId, sequence });
          },
    isConnected: () => link.connection !== null,
    close: () => link.close(),
  };
}
