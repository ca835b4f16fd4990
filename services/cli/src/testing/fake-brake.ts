import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { type Brake, BrakeService } from "@rollcall/api/rollcall/admin/v1/brake_pb";

/** The brake of a fake control plane: it notes what it is asked, and answers what was put in. */
export class FakeBrake {
  readonly brakes: Brake[] = [];
  decider = "health-1";

  clear(): void {
    this.brakes.length = 0;
    this.decider = "health-1";
  }

  /** Serve it; `enter` notes and authorizes each call. */
  route(router: ConnectRouter, enter: (method: string, detail: string, context: HandlerContext) => void): void {
    const answer = (group: string) => {
      const brake = this.brakes.find((it) => it.group === group);
      return brake === undefined ? {} : { brake };
    };
    router.service(BrakeService, {
      getBrake: (_request, context) => {
        enter("GetBrake", "", context);
        return { brakes: this.brakes, decider: this.decider };
      },
      freezeReactions: ({ group, reason, requestId }, context) => {
        enter("FreezeReactions", `${group} ${reason} ${requestId}`, context);
        return answer(group);
      },
      releaseReactions: ({ group, reason, now }, context) => {
        enter("ReleaseReactions", `${group} ${reason} ${now}`, context);
        return answer(group);
      },
    });
  }
}
