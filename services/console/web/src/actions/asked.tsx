import { lazy, Suspense } from "react";
import { Observable, useObservable } from "../live/observable.ts";
import type { NodeVerb } from "../state/cli-command.ts";

const VerbDialog = lazy(() => import("./verb-dialog.tsx").then((module) => ({ default: module.VerbDialog })));

/** A verb that waits for confirmation, and its nodes. */
interface Asked {
  readonly verb: NodeVerb | "label";
  readonly ids: readonly string[];
}

const asked = new Observable<Asked | null>(null);

/** Ask the user to confirm a verb for some nodes. */
export function ask(verb: Asked["verb"], ids: readonly string[]): void {
  if (ids.length > 0) asked.set({ verb, ids });
}

/** The open confirmation, if any. Rendered once in the page. */
export function AskedDialog() {
  const open = useObservable(asked);
  if (open === null) return null;
  return (
    <Suspense fallback={null}>
      <VerbDialog {...open} onClose={() => asked.set(null)} />
    </Suspense>
  );
}
