import { useTokenNames } from "../../live/token-names.ts";
import { actorName } from "../../state/events/event-groups.ts";
import type { NodeRow, StateFacts } from "../../state/nodes/node-row.ts";
import { Reason, StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

/** The four states of a node, each with its cause and start time. */
export function StatesPanel({ row }: { readonly row: NodeRow }) {
  const names = useTokenNames();
  const states: readonly (readonly [string, StateFacts])[] = [
    ["Membership", row.membership],
    ["Connection", row.connection],
    ["Health", row.health],
    ["Scheduling", row.scheduling],
  ];
  return (
    <div className="grid narrow" data-testid="states">
      {states.map(([name, facts]) => (
        <div key={name} className="tile" data-testid={`state-${name.toLowerCase()}`}>
          <span className="soft small">{name}</span>
          <strong>
            <StateMark word={facts.word} />
          </strong>
          <span className="small soft">
            <Time ms={facts.sinceMs} /> {facts.reason !== "" && <Reason of={facts.reason} />}
          </span>
          {facts.message !== "" && <span className="small breaks">{facts.message}</span>}
          {facts.actor !== "" && (
            <span className="small soft breaks" title={facts.actor}>
              by {actorName(facts.actor, names)}
            </span>
          )}
        </div>
      ))}
    </div>
  );
}
