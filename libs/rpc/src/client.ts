export { errorFromGrpc } from "./grpc/grpc-error.ts";
export {
  type Encodable,
  type GrpcMethod,
  type GrpcService,
  toGrpcMethod,
  toGrpcService,
} from "./grpc/grpc-service.ts";
