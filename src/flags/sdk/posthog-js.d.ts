/** Files of the browser library, imported `with { type: "file" }`: the path under which the file can be read. */
declare module "posthog-js/dist/*.js" {
  const path: string;
  export default path;
}
declare module "posthog-js/LICENSE" {
  const path: string;
  export default path;
}
