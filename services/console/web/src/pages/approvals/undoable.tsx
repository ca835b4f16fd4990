import { useEffect, useState } from "react";
import { useObservable } from "../../live/observable.ts";
import { UNDO_MS } from "../../state/undo-queue.ts";
import { Button } from "../../ui/button.tsx";
import { sendNow, takeBack, waiting } from "./decisions.ts";

/** Decisions that are about to be sent, with the time left to undo them. */
export function Undoable() {
  const queue = useObservable(waiting);
  const [nowMs, setNowMs] = useState(() => performance.now());
  const isWaiting = queue.length > 0;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = window.setInterval(() => setNowMs(performance.now()), 250);
    return () => window.clearInterval(timer);
  }, [isWaiting]);
  return queue.slice(-3).map(({ id, what, dueMs }) => (
    <div key={id} className="toast busy appears" data-testid="undoable">
      <div className="grow breaks">
        {what.verb === "approve" ? "Approving" : "Rejecting"}{" "}
        <strong>{what.ids.length === 1 ? what.ids[0] : `${what.ids.length} machines`}</strong>
        <span aria-hidden="true">
          {" "}
          in <span className="number">{Math.max(0, Math.ceil(Math.min(dueMs - nowMs, UNDO_MS) / 1000))}</span> s
        </span>
      </div>
      <Button small onClick={() => takeBack(id)}>
        Undo <kbd>z</kbd>
      </Button>
      <Button small look="plain" onClick={() => sendNow(id)}>
        Send now
      </Button>
    </div>
  ));
}
