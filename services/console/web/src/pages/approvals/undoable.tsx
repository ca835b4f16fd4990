import { useEffect, useState } from "react";
import { useObservable } from "../../live/observable.ts";
import { Button } from "../../ui/button.tsx";
import { sendNow, takeBack, waiting } from "./decisions.ts";

/** Decisions that are about to be sent, with the time that is left to take them back. */
export function Undoable() {
  const queue = useObservable(waiting);
  const [nowMs, setNowMs] = useState(() => Date.now());
  const isWaiting = queue.length > 0;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = window.setInterval(() => setNowMs(Date.now()), 250);
    return () => window.clearInterval(timer);
  }, [isWaiting]);
  return queue.slice(-3).map(({ id, what, dueMs }) => (
    <div key={id} className="toast busy appears" data-testid="undoable">
      <div className="grow breaks">
        {what.verb === "approve" ? "Approving" : "Rejecting"}{" "}
        <strong>{what.ids.length === 1 ? what.ids[0] : `${what.ids.length} machines`}</strong> in{" "}
        <span className="number">{Math.max(0, Math.ceil((dueMs - Math.max(nowMs, dueMs - 5000)) / 1000))}</span> s
      </div>
      <Button small onClick={() => takeBack(id)}>
        Take back <kbd>z</kbd>
      </Button>
      <Button small look="plain" onClick={sendNow}>
        Now
      </Button>
    </div>
  ));
}
