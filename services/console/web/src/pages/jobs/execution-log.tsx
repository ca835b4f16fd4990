import { HealthQueryService, OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { useEffect, useRef, useState } from "react";
import type { CallError } from "../../live/call-error.ts";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";
import { addOutput, NO_OUTPUT, type Output, outputText } from "../../state/output.ts";
import { Check, Choice } from "../../ui/field.tsx";
import { Notice } from "../../ui/notices.tsx";

/** Number of bytes of the log to load first, from its end. */
const TAIL_BYTES = 256 * 1024;
const OUTPUTS = [OutputStream.UNSPECIFIED, OutputStream.STDOUT, OutputStream.STDERR] as const;

/** The live output of an execution, shown as plain text. */
export function ExecutionLog({ id }: { readonly id: string }) {
  const [stream, setStream] = useState<OutputStream>(OutputStream.UNSPECIFIED);
  const [follow, setFollow] = useState(true);
  const [output, setOutput] = useState<Output>(NO_OUTPUT);
  const [error, setError] = useState<CallError | null>(null);
  const offset = useRef(0);
  const kept = useRef(NO_OUTPUT);
  const decoders = useRef(new Map<OutputStream, TextDecoder>());
  const show = (next: Output) => {
    kept.current = next;
    setOutput(next);
    if (next === NO_OUTPUT) decoders.current.clear();
  };
  const end = useRef<HTMLPreElement>(null);
  useStream(`${id} ${stream} ${follow}`, () => {
    offset.current = 0;
    show(NO_OUTPUT);
    setError(null);
    return {
      // Set no limit, because a log stream has no bookmarks, and an execution can be silent for hours.
      silenceMs: null,
      tellsItself: true,
      open: (signal) => {
        // Read both outputs again from their last bytes, because they have no common position.
        const isOne = stream !== OutputStream.UNSPECIFIED;
        if (!isOne || offset.current === 0) show(NO_OUTPUT);
        const from =
          isOne && offset.current > 0 ? { offset: BigInt(offset.current) } : { tailBytes: BigInt(TAIL_BYTES) };
        return clientOf(HealthQueryService).readExecutionLog({ executionId: id, stream, follow, ...from }, { signal });
      },
      onMessage: (piece) => {
        offset.current = Number(piece.offset) + piece.data.length;
        // Keep one decoder per output, because a chunk can end in the middle of a character, and the next chunk of the
        // same output has the rest.
        const decoder = decoders.current.get(piece.stream) ?? new TextDecoder();
        decoders.current.set(piece.stream, decoder);
        show(addOutput(kept.current, piece.data, decoder));
        setError(null);
      },
      onEnd: (ended) => {
        if (ended.reason !== "ENDED") setError(ended);
        // Do not retry when the output has ended with the execution, or when it does not exist, because the result
        // would be the same.
        return ended.kind === "away" && ended.reason !== "ENDED";
      },
    };
  });
  const text = outputText(output);
  useEffect(() => {
    const element = end.current;
    if (follow && text !== "" && element !== null) element.scrollTop = element.scrollHeight;
  }, [text, follow]);
  return (
    <div>
      <div className="row" style={{ padding: "8px 16px" }}>
        <Choice
          label="Output"
          hideLabel
          value={String(stream)}
          onChange={(value) => setStream(OUTPUTS.find((one) => String(one) === value) ?? OutputStream.UNSPECIFIED)}
          options={[
            [String(OutputStream.UNSPECIFIED), "Both outputs"],
            [String(OutputStream.STDOUT), "Standard output"],
            [String(OutputStream.STDERR), "Standard error"],
          ]}
        />
        <Check checked={follow} onChange={setFollow}>
          Follow
        </Check>
        {output.dropped > 0 && <span className="soft small">Only the last 2 MiB are shown.</span>}
      </div>
      {error !== null && <Notice tone="warn">{error.message}</Notice>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a scrollable element. */}
      <pre className="output" ref={end} tabIndex={0} data-testid="output">
        {text || "No output."}
      </pre>
    </div>
  );
}
