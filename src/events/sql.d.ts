/** SQL and data files are imported as strings, which embeds them in the executable. */
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.txt" {
  const text: string;
  export default text;
}
