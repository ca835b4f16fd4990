import { create, type DescService, type Message } from "@bufbuild/protobuf";
import type { ServerDuplexStream, UntypedServiceImplementation } from "@grpc/grpc-js";
import { Health as GrpcHealth, HealthCheckResponseSchema } from "@rollcall/api/grpc/health/v1/health_pb";
import { checkServing, watchServing } from "../builtins/health-service.ts";
import { type ReflectionService, reflectionServices } from "../builtins/reflection-service.ts";
import type { ServingStatus } from "../builtins/serving-status.ts";
import { toGrpcStatus } from "./grpc-error.ts";
import { type GrpcRoute, grpcRoute } from "./grpc-handlers.ts";

/** grpc.health.v1 for a grpc-js server. */
export function grpcHealthRoute(serving: ServingStatus): GrpcRoute {
  return grpcRoute(GrpcHealth, {
    check: ({ request }, answer) => {
      try {
        const status = checkServing(serving, request.service);
        answer(null, create(HealthCheckResponseSchema, { status }));
      } catch (error) {
        answer(toGrpcStatus(error));
      }
    },
    watch: (call) => {
      const stop = watchServing(serving, call.request.service, (status) => {
        // Statuses change a few times in a process's life: what a slow watcher leaves unread is bounded by that.
        call.write(create(HealthCheckResponseSchema, { status }));
      });
      call.on("close", stop);
      call.on("cancelled", stop);
    },
  });
}

/** Reflection, v1 and v1alpha, of these services and of itself for a grpc-js server. */
export function grpcReflectionRoutes(services: readonly DescService[]): readonly GrpcRoute[] {
  return reflectionServices(services).map((reflection) => ({
    service: reflection.service,
    handlers: reflectionHandlers(reflection),
    decoders: {},
    frames: {},
  }));
}

function reflectionHandlers({ answer }: ReflectionService): UntypedServiceImplementation {
  return {
    serverReflectionInfo: (call: ServerDuplexStream<Message, Message>) => {
      call.on("data", (request: Message) => {
        if (call.write(answer(request))) return;
        call.pause();
        call.once("drain", () => call.resume());
      });
      call.on("end", () => call.end());
    },
  };
}
