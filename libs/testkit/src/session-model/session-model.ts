import { AWAITING_HELLO, closeSession, decideFrame, NO_SEQUENCE, openSession } from "@rollcall/domain";
import type { ModelCall, ModelState, ModelStream, ReplicaIndex } from "./model-state.ts";

/** What to leave out of the protocol, to see that it is needed. */
export type MissingRule = "compare-and-set" | "epoch-of-adoption" | "closed-while-opening";

/** How much is explored. */
export interface ModelBounds {
  readonly streams: number;
  readonly beats: number;
  readonly epochs: number;
  readonly missing?: MissingRule;
}

const REPLICAS = [0, 1] as const;

/** Every state that one step leads to, whoever takes it. */
export function nextStates(state: ModelState, bounds: ModelBounds): ModelState[] {
  const next: ModelState[] = [];
  const step = (change: (copy: ModelState) => void): void => {
    const copy = structuredCopy(state);
    copy.written = null;
    change(copy);
    next.push(copy);
  };
  agentSteps(state, bounds, step);
  for (const [index, stream] of state.streams.entries()) streamSteps(stream, index, step);
  for (const [index, call] of state.calls.entries()) callSteps(call, index, bounds, step);
  for (const replica of REPLICAS) replicaSteps(state, replica, step);
  return next;
}

type Step = (change: (copy: ModelState) => void) => void;

function agentSteps(state: ModelState, { streams, beats }: ModelBounds, step: Step): void {
  if (state.streams.length < streams) {
    for (const replica of REPLICAS) {
      step((copy) => {
        copy.streams.push({
          replica,
          state: AWAITING_HELLO,
          frames: [0],
          effects: [],
          hasEnded: false,
        });
      });
    }
  }
  state.streams.forEach(({ state: session, frames, effects }, index) => {
    const sent = Math.max(0, ...frames, ...effects);
    if (session.kind === "open" && sent < beats) {
      step((copy) => streamOf(copy, index).frames.push(sent + 1));
    }
  });
}

/** Each frame arrives, arrives and stays (a double), or is lost; and the connection may break. */
function streamSteps(stream: ModelStream, index: number, step: Step): void {
  for (const frame of new Set(stream.frames)) {
    step((copy) => receive(copy, index, frame));
    step((copy) => {
      receive(copy, index, frame);
      take(streamOf(copy, index).frames, frame);
    });
    step((copy) => take(streamOf(copy, index).frames, frame));
  }
  if (stream.state.kind !== "closed") step((copy) => leave(copy, index));
}

function receive(state: ModelState, index: number, frame: number): void {
  const stream = streamOf(state, index);
  const decision = decideFrame(stream.state, frame === 0 ? "hello" : "beat", frame);
  switch (decision.action) {
    case "authenticate":
      stream.state = decision.next;
      state.calls.push({ kind: "open", replica: stream.replica, stream: index, epoch: null });
      return;
    case "beat": {
      const { held } = state.replicas[stream.replica];
      if (held?.stream !== index || stream.state.kind !== "open") return;
      if (stream.state.lastSequence === NO_SEQUENCE) held.health = "HEALTHY";
      stream.state = { ...stream.state, lastSequence: frame };
      stream.effects.push(frame);
      return;
    }
    case "refuse":
      leave(state, index);
      return;
    case "acknowledge":
    case "ignore":
    case "node-info":
    case "leave":
  }
}

/** A call reaches the record and its answer its caller; either can be lost. */
function callSteps(call: ModelCall, index: number, bounds: ModelBounds, step: Step): void {
  step((copy) => copy.calls.splice(index, 1));
  if (call.kind === "write") {
    step((copy) => {
      copy.calls.splice(index, 1);
      write(copy, call, bounds);
    });
  } else if (call.epoch === null) {
    step((copy) => give(copy, index, bounds));
  } else {
    step((copy) => {
      copy.calls.splice(index, 1);
      answer(copy, call, call.epoch ?? 0, bounds);
    });
  }
}

function give(state: ModelState, index: number, { epochs, missing }: ModelBounds): void {
  const call = state.calls[index];
  const { record, leases } = state;
  if (call === undefined || call.kind === "write" || state.owners.length >= epochs) return;
  if (call.kind === "adopt") {
    const isOrphan = record.owner !== null && record.owner !== call.replica && !leases[record.owner];
    if (!isOrphan || !leases[call.replica]) return;
  }
  if (call.kind === "open" || missing !== "epoch-of-adoption") record.epoch += 1;
  record.owner = call.replica;
  state.owners.push(call.replica);
  call.epoch = record.epoch;
}

function answer(
  state: ModelState,
  call: Exclude<ModelCall, { kind: "write" }>,
  epoch: number,
  { missing }: ModelBounds,
): void {
  const replica = state.replicas[call.replica];
  const health = replica.held?.health ?? "UNHEALTHY";
  if (call.kind === "adopt") {
    if (replica.held === null || replica.held.epoch < epoch) {
      lose(state, call.replica);
      replica.held = { epoch, stream: null, health };
    }
    return;
  }
  const stream = streamOf(state, call.stream);
  const opened = openSession(stream.state, epoch);
  const older = replica.held?.stream ?? null;
  replica.held = { epoch, stream: opened === null ? null : call.stream, health };
  if (older !== null) close(state, older);
  if (opened !== null) stream.state = opened;
  else if (missing === "closed-while-opening") {
    stream.state = { kind: "open", epoch, lastSequence: NO_SEQUENCE };
    replica.held.stream = call.stream;
  }
}

function write(
  state: ModelState,
  { replica, epoch, health }: Extract<ModelCall, { kind: "write" }>,
  { missing }: ModelBounds,
): void {
  const { record } = state;
  const isCurrent = record.owner === replica && record.epoch === epoch;
  if (!isCurrent && missing !== "compare-and-set") return;
  record.health = health;
  state.written = { replica, epoch };
}

/** It judges, writes, adopts, follows the log, and loses its lease at any moment, whatever the time. */
function replicaSteps(state: ModelState, replica: ReplicaIndex, step: Step): void {
  const { held, read } = state.replicas[replica];
  const isCalling = state.calls.some(({ kind, replica: of }) => kind !== "open" && of === replica);
  if (held !== null) {
    if (held.health === "HEALTHY") {
      step((copy) => {
        const node = copy.replicas[replica].held;
        if (node === null) return;
        if (node.stream !== null) leave(copy, node.stream);
        node.health = "UNHEALTHY";
      });
    }
    if (!isCalling) {
      const { epoch, health } = held;
      step((copy) => copy.calls.push({ kind: "write", replica, epoch, health }));
    }
  } else if (!isCalling) {
    step((copy) => copy.calls.push({ kind: "adopt", replica, epoch: null }));
  }
  if (state.leases[replica]) {
    step((copy) => {
      copy.leases[replica] = false;
    });
  }
  if (read < state.owners.length) {
    step((copy) => follow(copy, replica));
  }
}

/** Read that another has the node: what is held under an older epoch is given up. */
function follow(state: ModelState, replica: ReplicaIndex): void {
  const self = state.replicas[replica];
  const owner = state.owners[self.read];
  self.read += 1;
  if (owner !== replica && self.held !== null && self.held.epoch < self.read) lose(state, replica);
}

function lose(state: ModelState, replica: ReplicaIndex): void {
  const { held } = state.replicas[replica];
  if (held === null) return;
  if (held.stream !== null) close(state, held.stream);
  state.replicas[replica].held = null;
}

/** The connection is gone, or is ended by the replica. */
function leave(state: ModelState, index: number): void {
  const { held } = state.replicas[streamOf(state, index).replica];
  close(state, index);
  if (held?.stream === index) held.stream = null;
}

function close(state: ModelState, index: number): void {
  const stream = streamOf(state, index);
  stream.hasEnded = true;
  stream.state = closeSession(stream.state, "ENDED");
}

function streamOf(state: ModelState, index: number): ModelStream {
  return state.streams[index] as ModelStream;
}

function take(frames: number[], frame: number): void {
  frames.splice(frames.indexOf(frame), 1);
}

/** States are plain data. */
function structuredCopy(state: ModelState): ModelState {
  return JSON.parse(JSON.stringify(state)) as ModelState;
}
