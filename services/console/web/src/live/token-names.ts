import { useMemo } from "react";
import { session, useRights } from "../session/session.ts";
import { access } from "./clients.ts";
import { useObservable } from "./observable.ts";
import { useRead } from "./queries.ts";

const MOST = 500;

/** The names of access tokens, keyed by id: all of them for admins, otherwise only that of the page's session. */
export function useTokenNames(): ReadonlyMap<string, string> {
  const { administer } = useRights();
  const current = useObservable(session);
  const read = useRead(
    ["token-names"],
    (signal) => access.listAccessTokens({ pageSize: MOST, showEnded: true }, { signal }),
    { enabled: administer, on: ["access.token"] },
  );
  const tokens = read.data?.accessTokens;
  return useMemo(() => {
    const names = new Map(tokens?.map(({ id, name }) => [id, name]));
    if (current.state === "signed-in" && current.actor.startsWith("token:")) {
      names.set(current.actor.slice("token:".length), current.name.replace(/^token:/, "token "));
    }
    return names;
  }, [tokens, current]);
}
