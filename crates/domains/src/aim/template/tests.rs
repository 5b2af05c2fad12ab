mod asking;
mod children;
mod events;
mod rows;
mod usage;
