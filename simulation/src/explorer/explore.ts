import { seededRandom } from "@rollcall/domain";
import { InvariantBroken } from "../health/invariants.ts";
import { type Bounds, ExploredWorld } from "./explored-world.ts";

/** The result of an exploration. */
export interface Exploration {
  /** Number of distinct reachable states. */
  readonly states: number;
  /** Number of steps to the farthest state. */
  readonly depth: number;
  /** The first broken invariant and the steps to it; null for none. */
  readonly violation: Violation | null;
}

export interface Violation {
  readonly invariant: string;
  /** The steps, in order. */
  readonly steps: readonly string[];
}

/** Visit the reachable states in breadth-first order, until no state is new or `mostStates` are known. */
export async function explore(bounds: Bounds, mostStates: number): Promise<Exploration> {
  const seen = new Set<string>();
  let frontier: readonly Reached[] = [{ path: [], width: new ExploredWorld(bounds).actions().length }];
  let depth = 0;
  while (frontier.length > 0) {
    const found: Reached[] = [];
    for (const { path, width } of frontier) {
      for (let choice = 0; choice < width; choice += 1) {
        const next = [...path, choice];
        const { world, steps } = await replay(bounds, next);
        const key = world.fingerprint();
        if (seen.has(key)) continue;
        if (seen.size >= mostStates) return { states: seen.size, depth, violation: null };
        seen.add(key);
        const invariant = world.violation();
        if (invariant !== null) return { states: seen.size, depth, violation: { invariant, steps } };
        found.push({ path: next, width: world.actions().length });
      }
    }
    frontier = found;
    depth += 1;
  }
  return { states: seen.size, depth, violation: null };
}

/** A state, described by the choices that lead to it, and the number of choices that it offers. */
interface Reached {
  readonly path: readonly number[];
  readonly width: number;
}

/**
 * Take random steps from the start, far deeper than an exhaustive search can; then let everything settle. Returns
 * null when every invariant held.
 */
export async function wander(
  bounds: Bounds,
  options: { readonly steps: number; readonly seed: number },
): Promise<Violation | null> {
  const random = seededRandom(options.seed);
  const world = new ExploredWorld(bounds);
  const steps: string[] = [];
  try {
    for (let step = 0; step < options.steps; step += 1) {
      const actions = world.actions();
      const choose = () => actions[Math.floor(random() * actions.length)];
      const first = choose();
      const action = first?.isFault === true && random() < FAULTS_PASSED_OVER ? choose() : first;
      if (action === undefined) break;
      steps.push(action.name);
      await world.take(action);
      const invariant = world.violation();
      if (invariant !== null) return { invariant, steps };
    }
    const invariant = await world.settle();
    return invariant === null ? null : { invariant, steps: [...steps, "everything settles"] };
  } catch (error) {
    if (!(error instanceof InvariantBroken)) throw error;
    return { invariant: error.message, steps };
  }
}

const FAULTS_PASSED_OVER = 0.8;

/** Instances of the shipped classes cannot be copied, so repeat the steps to reach a state again. */
async function replay(bounds: Bounds, path: readonly number[]) {
  const world = new ExploredWorld(bounds);
  const steps: string[] = [];
  for (const choice of path) {
    const action = world.actions()[choice];
    if (action === undefined) throw new Error("replaying the same steps led to another state");
    steps.push(action.name);
    try {
      await world.take(action);
    } catch (error) {
      // Continue after a broken invariant, because the world has recorded it. Rethrow any other error.
      if (!(error instanceof InvariantBroken)) throw error;
    }
  }
  return { world, steps };
}
