/** SQL files are imported as text, so that they are inside the executable. */
declare module "*.sql" {
  const text: string;
  export default text;
}
