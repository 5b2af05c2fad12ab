mod asking;
mod children;
mod events;
mod predecessor;
mod rows;
mod unrecorded;
mod usage;
