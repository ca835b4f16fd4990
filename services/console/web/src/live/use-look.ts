import { useEffect } from "react";
import type { NodeScope } from "../state/nodes/node-scope.ts";
import { fleet } from "./fleet.ts";
import { useObservable } from "./observable.ts";

/**
 * Say which nodes a page looks at, which is what it has of a fleet that is too large to be kept whole. Answers whether
 * it is.
 */
export function useLook(scope: NodeScope): boolean {
  const words = JSON.stringify(scope);
  useEffect(() => fleet.look(JSON.parse(words) as NodeScope), [words]);
  return useObservable(fleet.large);
}
