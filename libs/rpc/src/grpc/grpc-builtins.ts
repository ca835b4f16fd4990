import { create, type DescService, type Message, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  Health as GrpcHealth,
  type HealthCheckRequest,
  HealthCheckResponseSchema,
  type HealthListRequest,
  HealthListResponseSchema,
} from "@rollcall/api/grpc/health/v1/health_pb";
import { checkServing, listServing, watchServing } from "../builtins/health-service.ts";
import { type ReflectionService, reflectionServices } from "../builtins/reflection-service.ts";
import type { ServingStatus } from "../builtins/serving-status.ts";
import { noMessage, severalMessages } from "../calls/message-parts.ts";
import type { FrameCall, FrameHandler } from "./frame-call.ts";
import { type GrpcRoute, grpcRoute } from "./grpc-handlers.ts";

/** Serve grpc.health.v1 on the agents' port. */
export function grpcHealthRoute(serving: ServingStatus): GrpcRoute {
  const encoded = (init: MessageInitShape<typeof HealthCheckResponseSchema>) =>
    toFrame(HealthCheckResponseSchema, create(HealthCheckResponseSchema, init));
  return grpcRoute(GrpcHealth, {
    check: oneRequest<HealthCheckRequest>(({ service }, call) => {
      call.write(encoded({ status: checkServing(serving, service) }));
      call.end();
      return null;
    }),
    list: oneRequest<HealthListRequest>((_, call) => {
      call.write(toFrame(HealthListResponseSchema, listServing(serving)));
      call.end();
      return null;
    }),
    // Ignore whether the watcher reads: statuses change only a few times in the life of a process, so little is
    // buffered.
    watch: oneRequest<HealthCheckRequest>(({ service }, call) =>
      watchServing(serving, service, (status) => call.write(encoded({ status }))),
    ),
  });
}

/** Serve reflection, v1 and v1alpha, on the agents' port. It describes these services and itself. */
export function grpcReflectionRoutes(services: readonly DescService[]): readonly GrpcRoute[] {
  return reflectionServices(services).map((reflection) => ({
    service: reflection.service,
    handlers: { [reflection.method.localName]: reflectionHandler(reflection) },
    decoders: {},
  }));
}

function reflectionHandler({ method, answer }: ReflectionService): FrameHandler<unknown> {
  return {
    open: (call) => ({
      onFrame: (request) => {
        if (call.write(toFrame(method.output, answer(request as Message)))) return;
        call.pause();
        call.onceAllRead(() => call.resume());
      },
      onHalfClose: () => call.end(),
      onGone: () => {},
    }),
  };
}

/**
 * Make the handler of a method that takes one request.
 *
 * @param serve is called once the request is complete. Returns a function to call when the call is over, or null.
 */
export function oneRequest<I>(serve: (request: I, call: FrameCall<I>) => (() => void) | null): FrameHandler<I> {
  return {
    open: (call) => {
      let request: I | null = null;
      let stop: (() => void) | null = null;
      return {
        onFrame: (frame) => {
          if (request !== null) throw severalMessages();
          request = frame;
        },
        onHalfClose: () => {
          if (request === null) throw noMessage();
          stop = serve(request, call);
        },
        onGone: () => stop?.(),
      };
    },
  };
}

function toFrame(schema: Parameters<typeof toBinary>[0], message: Message): Buffer {
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
