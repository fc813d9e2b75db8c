declare module "s3rver" {
  export interface S3Store {
    getResourcePath(bucket: string, key: string | undefined, resource: "object" | "uploads"): string;
    putObject(object: { bucket: string; key: string }): Promise<{ size: number }>;
    putPart(bucket: string, upload: string, part: number, content: unknown): Promise<{ size: number }>;
  }
  export default class S3rver {
    readonly store: S3Store;
    constructor(options: Record<string, unknown>);
    run(): Promise<{ port: number }>;
    close(): Promise<void>;
  }
}
