import { useEffect, useState } from "react";
import { CONNECTING, type Link } from "../state/link.ts";
import { type Followed, type Following, follow } from "./follow.ts";
import { Observable, useObservable } from "./observable.ts";

const IDLE = new Observable<Link>(CONNECTING);

/** Follow a stream while a component is shown. `key` names the stream: another one is opened when it changes. */
export function useStream<M>(key: string, followed: () => Followed<M> | null): Link {
  const [following, setFollowing] = useState<Following | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what the stream is opened with.
  useEffect(() => {
    const wanted = followed();
    if (wanted === null) return;
    const started = follow(wanted);
    setFollowing(started);
    return () => started.stop();
  }, [key]);
  return useObservable(following?.link ?? IDLE);
}
