//! Prints the SQL of records as a script: the tables as PostgreSQL has them, and
//! every statement, prepared. `scripts/check-postgres` has a real one read it.

#![allow(clippy::print_stdout, reason = "the script is its output")]

use angelia_engines::sql;

fn main() {
    for table in sql::postgres_tables() {
        println!("{table};");
    }
    for (number, statement) in sql::every_statement().iter().enumerate() {
        println!("PREPARE s{number} AS {statement};");
    }
}
