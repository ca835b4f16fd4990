import { useState } from "react";
import type { Outcome } from "../state/bulk.ts";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/notices.tsx";

const FIRST = 12;

/** The names of the nodes that a verb applies to: the first few, and all on demand. */
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

/**
 * The result for each node, or the expected result of a dry run. Refusals are listed by
 * node.
 */
export function Outcomes({ outcomes }: { readonly outcomes: readonly Outcome[] }) {
  const refused = outcomes.filter(({ refusal }) => refusal !== "");
  const done = outcomes.length - refused.length;
  const unsent = outcomes.filter(({ fate }) => fate === "not-sent").length;
  const unknown = outcomes.filter(({ fate }) => fate === "unknown").length;
  const answered = refused.length - unsent - unknown;
  return (
    <Notice tone={refused.length === 0 ? "good" : "warn"}>
      <strong>
        {done.toLocaleString("en-US")} accepted, {answered.toLocaleString("en-US")} refused
        {unknown > 0 && `, ${unknown.toLocaleString("en-US")} unknown`}
        {unsent > 0 && `, ${unsent.toLocaleString("en-US")} not sent`}
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
