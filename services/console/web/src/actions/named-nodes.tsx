import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/notices.tsx";
import type { Outcome } from "./verbs.ts";

const FIRST = 12;

/** The nodes that something is about to be done with, by name: the first, and all on demand. */
export function NamedNodes({ ids }: { readonly ids: readonly string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? ids : ids.slice(0, FIRST);
  return (
    <div className="chips" data-testid="named-nodes">
      {shown.map((id) => (
        <span key={id} className="chip cut">
          {id}
        </span>
      ))}
      {shown.length < ids.length && (
        <Button small look="plain" onClick={() => setAll(true)}>
          and {(ids.length - shown.length).toLocaleString("en-US")} more
        </Button>
      )}
    </div>
  );
}

/** What was done, or would be, with each node; refusals are named. */
export function Outcomes({ outcomes }: { readonly outcomes: readonly Outcome[] }) {
  const refused = outcomes.filter(({ refusal }) => refusal !== "");
  const done = outcomes.length - refused.length;
  return (
    <Notice tone={refused.length === 0 ? "good" : "warn"}>
      <strong>
        {done.toLocaleString("en-US")} accepted, {refused.length.toLocaleString("en-US")} refused
      </strong>
      {refused.slice(0, FIRST).map(({ id, refusal, reason }) => (
        <div key={id}>
          {id}: {refusal} <code>{reason}</code>
        </div>
      ))}
      {refused.length > FIRST && <div>and {refused.length - FIRST} more</div>}
    </Notice>
  );
}
