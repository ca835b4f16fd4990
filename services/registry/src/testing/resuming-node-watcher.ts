import { type DescEnum, enumToJson, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import {
  ConnectionStateSchema,
  HealthStateSchema,
  MembershipStateSchema,
  type Node,
  NodeSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  RegistryService,
  type WatchNodesRequestSchema,
  type WatchNodesResponse,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeFacts, nodesText } from "./node-facts.ts";
import { ResumingStream } from "./resuming-stream.ts";
import type { Rig } from "./rig.ts";

type Filter = Omit<MessageInitShape<typeof WatchNodesRequestSchema>, "start" | "$typeName">;

/** The behaviour of a client in the drill. */
export interface NodeBehaviour {
  readonly name: string;
  readonly filter?: Filter;
  /** Whether a node matches the filter. */
  readonly isWanted?: (facts: NodeFacts) => boolean;
  /** Called for each applied message; can delay reading. */
  readonly onMessage?: (watcher: ResumingNodeWatcher, messages: number) => void | Promise<void>;
}

/**
 * A client that applies the messages of WatchNodes in order, across all disconnects. It records its nodes whenever a
 * message names their revision.
 */
export class ResumingNodeWatcher {
  readonly behaviour: NodeBehaviour;
  /** The client's nodes at the revisions that messages named. */
  readonly marks: { readonly revision: bigint; readonly nodes: string }[] = [];
  readonly stream: ResumingStream<WatchNodesResponse>;
  readonly #facts = new Map<string, NodeFacts>();
  readonly #nodes = new Map<string, Node>();
  #messages = 0;
  #isComplete = false;

  /**
   * Watches until it has the nodes of the revision that `last` returns. `last` returns null while that revision is
   * unknown.
   */
  constructor(rig: () => Rig, behaviour: NodeBehaviour, last: () => bigint | null) {
    this.behaviour = behaviour;
    this.stream = new ResumingStream(rig, {
      open: (transport, token, signal) => {
        // After an incomplete snapshot, start again without nodes.
        if (!this.#isComplete) {
          this.#facts.clear();
          this.#nodes.clear();
        }
        const start = token === null ? {} : { start: { case: "resumeToken", value: token } as const };
        const request = { ...start, ...behaviour.filter };
        return createClient(RegistryService, transport).watchNodes(request, {
          signal,
          timeoutMs: 0,
        });
      },
      keep: (message) => {
        this.#keep(message);
        const end = last();
        return end !== null && message.revision >= end;
      },
      onMessage: () => behaviour.onMessage?.(this, this.#messages),
    });
  }

  /** Why streams have ended so far. */
  get ends(): readonly string[] {
    return this.stream.ends;
  }

  /** The last revision that a message named. */
  get revision(): bigint {
    return this.marks.at(-1)?.revision ?? 0n;
  }

  /** The client's nodes with all fields, as comparable strings, keyed by id. */
  get whole(): ReadonlyMap<string, string> {
    return wholeNodes(this.#nodes.values());
  }

  #keep({ changes, snapshotComplete, revision }: WatchNodesResponse): void {
    for (const { change } of changes) {
      if (change.case === "upserted") {
        this.#facts.set(change.value.id, factsOf(change.value));
        this.#nodes.set(change.value.id, change.value);
      }
      if (change.case === "removedId") {
        this.#facts.delete(change.value);
        this.#nodes.delete(change.value);
      }
    }
    this.#messages += 1;
    this.#isComplete ||= snapshotComplete;
    if (revision > 0n) this.marks.push({ revision, nodes: nodesText(this.#facts) });
  }
}

/** Nodes with all fields, as comparable strings, keyed by id. */
export function wholeNodes(nodes: Iterable<Node>): ReadonlyMap<string, string> {
  const texts = [...nodes].map((node): [string, string] => [
    node.id,
    toJsonString(NodeSchema, node, { prettySpaces: 1 }),
  ]);
  return new Map(texts.sort(([left], [right]) => (left < right ? -1 : 1)));
}

function factsOf({ membership, connection, health, labels }: Node): NodeFacts {
  return {
    membership: wordOf(MembershipStateSchema, membership?.state),
    connection: wordOf(ConnectionStateSchema, connection?.state),
    health: wordOf(HealthStateSchema, health?.state),
    zone: labels.find(({ key }) => key === "zone")?.value ?? "",
  };
}

/** Convert an enum value to its name without the enum's prefix: MEMBERSHIP_STATE_APPROVED becomes APPROVED. */
function wordOf(descriptor: DescEnum, value = 0): string {
  return String(enumToJson(descriptor, value)).slice((descriptor.sharedPrefix ?? "").length);
}
