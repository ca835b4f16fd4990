// The DOM comes first, because the pages need it when they are imported.
import { withDom } from "../testing/dom.ts";

// The modules under test.

import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { EventService, type WatchEventsRequest } from "@rollcall/api/rollcall/events/v1/events_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { serveInTests } from "../testing/fake-server.ts";
import { eventually } from "../testing/render.tsx";

withDom();

// Import the module once more, because other files of this process share the log of the pages.
const { log } = await import(new URL("./log.ts?of=this-test", import.meta.url).href);

const TOKEN = "t";
const starts: WatchEventsRequest["start"]["case"][] = [];
/** Why the server ends the next stream that resumes; empty to keep it open. */
let refusal = "";

serveInTests((router) => {
  router.service(RegistryService, { getControlPlaneStatus: () => ({ log: { headRevision: 100n } }) });
  router.service(EventService, {
    watchEvents: async function* ({ start }, { signal }) {
      starts.push(start.case);
      if (start.case === "resumeToken" && refusal !== "") {
        const reason = `ERROR_REASON_${refusal}`;
        throw new ConnectError("no", Code.OutOfRange, undefined, [{ desc: ErrorInfoSchema, value: { reason } }]);
      }
      yield { resumeToken: TOKEN };
      // A stream from the newest revision breaks, so that the page resumes.
      if (start.case === "afterRevision" && refusal !== "") throw new ConnectError("away", Code.Unavailable);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
  });
});

describe("log", () => {
  const stop = () => {
    log.following?.stop();
    log.following = null;
  };
  afterAll(stop);

  it.each(["REVISION_COMPACTED", "INVALID_RESUME_TOKEN"])(
    "should start at the newest revision again when the server refuses its token with %s",
    async (reason) => {
      stop();
      starts.length = 0;
      refusal = reason;
      log.start();
      await eventually("a refused token", () => starts.includes("resumeToken") || undefined);
      const refused = starts.indexOf("resumeToken");
      await eventually("another start", () => starts[refused + 1]);
      refusal = "";
      expect(starts[refused + 1]).toBe("afterRevision");
    },
  );
});
